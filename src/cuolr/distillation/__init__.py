"""Distillation: one fast ranker, the student, that ranks as a slower model, its teacher, does.

student   the student, fitted to how the teacher rates the candidates of a log
distil    all of it: the ratings, the student, and how much of the teacher's top 10 it has on queries that are held out
"""
