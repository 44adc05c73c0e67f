"""Experiments: a TOML file each, with the cells of a table or figure of the paper, or of one's own.

spec       what a file says, and which cells it makes
reading    the file, with everything in it checked
data       the data that an experiment runs on
cell       one cell: train, rank, measure
results    the folder of results, a file per cell
runner     all cells: what is left to do, in which order, by whom
workers    what runs the cells: processes on this machine, or ray_workers on a cluster
tune       trials of a learner's settings
report     tables, plots and a page
"""
