"""Random cases against other libraries, for minutes or hours: `make soak`.

A case is a function of its seed alone, so that every failure can be made again. Three kinds:
operations (against python-graphblas), algorithms (against SciPy and NetworkX), files (mutations of
small valid files, which have to be read right or refused).
"""
