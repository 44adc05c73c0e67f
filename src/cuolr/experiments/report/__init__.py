"""The report on an experiment's results.

settings       the columns of a table
scores         the numbers of a table
summary        means, tests and gaps: the content of the report
gap            the gap closed
paper          the paper's numbers
wording        names, numbers and findings in words
text_tables    tables for the terminal
table_files    Markdown, CSV and LaTeX
curves         curves over a sweep or a grid
plots          the plots, their colours, and how they are drawn (colours, drawing)
page           the HTML page
report_folder  all of it, written to a folder
"""
