"""The report on an experiment's results.

settings       the columns of a table
scores         the numbers of a table, and the gap closed
summary        means, tests and gaps: the content of the report
paper          the paper's numbers
wording        names, numbers and findings in words
text_tables    tables for the terminal
table_files    Markdown, CSV and LaTeX
curves         curves over a sweep or a grid
plots          the plots; drawing has their colours
log_page       a page on a click log, with its plots
report_folder  the HTML page, and all of it, written to a folder
"""
