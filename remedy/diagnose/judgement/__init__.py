"""From the events of all logs to the answer: ``decide`` asks the others, ``ranking`` weighs causes."""
