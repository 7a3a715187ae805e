"""What a text means by its words alone, wherever it stands: the thing, the reason, the kind of exception."""
