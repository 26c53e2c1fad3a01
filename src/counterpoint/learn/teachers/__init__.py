"""Teachers: where scores to learn from come from, when the data have none."""

from counterpoint.learn.teachers.models import CrossEncoderTeacher, ModelTeacher
from counterpoint.learn.teachers.run import RunTeacher
from counterpoint.learn.teachers.teacher import Grader, Teacher, taught

__all__ = ["CrossEncoderTeacher", "Grader", "ModelTeacher", "RunTeacher", "Teacher", "taught"]
