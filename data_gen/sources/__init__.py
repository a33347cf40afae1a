"""One module for each origin of Examples; each has a `load` that a config under `conf/dataset/` names."""
