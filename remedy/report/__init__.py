"""What people and programs see of a run: text for terminals, one JSON document for programs."""
