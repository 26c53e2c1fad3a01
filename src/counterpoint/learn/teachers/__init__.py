"""Teachers: sources of scores to learn from, for data without scores."""

from counterpoint.learn.teachers.models import CrossEncoderTeacher, ModelTeacher
from counterpoint.learn.teachers.run import RunTeacher
from counterpoint.learn.teachers.teacher import Grader, Teacher, taught

__all__ = ["CrossEncoderTeacher", "Grader", "ModelTeacher", "RunTeacher", "Teacher", "taught"]
