"""Pages worth keeping: a plan, a run with its proof, the months of a fleet.

A page is one HTML file: nothing is fetched, no script runs, it is light or dark as its reader's screen is, and
everything that came from a host, a plan or a journal is escaped and visible (``remedy.templating``).
"""
