"""Distillation: one fast ranker, the student, that ranks as a slower model, its teacher, does.

teacher_scores   how the teacher rates the candidates of a log
student          the student, fitted to these
agreement        how much of the teacher's top 10 the student has
distil           all of it, with some queries held out for the agreement
"""
