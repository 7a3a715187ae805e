"""What hosts, users and plans can do that mean harm, each shown by a program that does it."""
