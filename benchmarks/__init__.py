"""Measurements behind the project's claims; a package of the repository, not of the product.

    python -m benchmarks                 what there is, and what it costs
    python -m benchmarks sim             measure, and keep the figures in benchmarks/results
    python -m benchmarks sim --quick     a minute or less: does the benchmark work?
    python -m benchmarks check           do the kept figures still hold for the code of today?
    python -m benchmarks tables          write the tables of docs/benchmarks.md

A figure is only written from a clean commit. What takes long is cut into shards (a unit, a
recording), each kept when it is done: a run goes on where the last one stopped, here or elsewhere.
"""
