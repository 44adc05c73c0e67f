"""The report on an experiment's results.

settings  what the columns of a table are
summary   means, tests, gaps: all numbers
gap       the gap closed
paper     the paper's numbers
wording   names, numbers and findings in words
table_files Markdown, CSV and LaTeX
curves    what a sweep or a grid gives to plot
plots     what is drawn, in which colours, and how (colours, drawing)
page      the HTML page
folder    all of it, written to a folder
"""
