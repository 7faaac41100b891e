#!/bin/sh
# Plants faults in a copy of the tree and counts how many of them the tests find: see mutants.py.
exec python3 "$(dirname "$0")/mutants.py" "$@"
