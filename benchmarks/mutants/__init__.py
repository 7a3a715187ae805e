"""Mutation testing: which small changes of the product do the unit tests notice?

``operators``  the small changes that can be made to a module
``draw``       the rooms, and a sample of their mutants that a seed decides
``lane``       pytest in a process of its own, on a copy of the tree
``reach``      which tests reach which line, measured once a tree
``trial``      trying mutants side by side
``table``      the results as a table and a list of survivors
"""
