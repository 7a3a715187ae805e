"""The command line: it parses options, asks, prints and exits. Everything else is done below."""
