"""The remedies: one file a concern, each with all that is to be known about it."""
