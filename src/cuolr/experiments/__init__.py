"""Experiments: a TOML file each, with the cells of a table or figure of the paper, or your own.

spec, spec_file          what an experiment is, and its file
selection                conditions on cells
datasets                 the data that an experiment runs on
cells                    one cell: train, rank, measure
runner, workers          all cells, on this machine (local_workers) or a cluster (ray_workers)
run_cells                a run from start to end
fingerprints             what decides the numbers of a cell
results, results_folder  results, and the folder they are written to
packed_results           all results in one Parquet file
renaming                 new names in saved results
tune                     trials of a learner's settings
report                   tables, plots and a page
"""
