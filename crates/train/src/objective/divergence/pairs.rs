use crate::{
    batch::BatchTerms,
    error::{ObjectiveError, TrainError},
};
use std::collections::HashMap;

/// A loss term under two conditionings: the student's branch and the teacher's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Alignment {
    /// Generation and offset of the term in the student's batch.
    pub student: (u32, u32),
    /// Generation and offset of the term in the teacher's batch.
    pub teacher: (u32, u32),
}

/// Rows of two batches that predict the same token under two conditionings.
///
/// In a tree a teacher is another branch with aligned targets; which batch, layout or model it
/// comes from makes no difference here.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pairs {
    /// Index into the student's flattened hidden states, per pair.
    pub students: Vec<i64>,
    /// Index into the teacher's flattened hidden states, per pair.
    pub teachers: Vec<i64>,
    /// The token that was sampled, per pair.
    pub targets: Vec<u32>,
    /// Weight of the student's term, per pair; 0 where that is negative, since a token that is to
    /// become less likely is pulled nowhere.
    pub weights: Vec<f64>,
    /// Generation and offset of the student's term, per pair.
    pub ids: Vec<(u32, u32)>,
}

impl Pairs {
    /// The pairs of some aligned terms.
    ///
    /// # Errors
    /// A term that its batch does not have, or whose target is another token on the other side; a
    /// batch of several trees, in which terms of one name are ambiguous.
    pub fn new(
        student: &BatchTerms,
        teacher: &BatchTerms,
        aligned: impl IntoIterator<Item = Alignment>,
    ) -> Result<Self, TrainError> {
        let (students, teachers) = (student.places()?, teacher.places()?);
        let find = |places: &HashMap<(u32, u32), usize>, (generation, offset), side| {
            places.get(&(generation, offset)).copied().ok_or(ObjectiveError::Unpaired {
                generation,
                offset,
                side,
            })
        };
        let mut pairs = Self::default();
        for Alignment { student: own, teacher: other } in aligned {
            let (at, by) = (find(&students, own, "student")?, find(&teachers, other, "teacher")?);
            let (expected, found) = (student.targets[at], teacher.targets[by]);
            if expected != found {
                return Err(ObjectiveError::Misaligned {
                    generation: own.0,
                    offset: own.1,
                    expected,
                    found,
                }
                .into());
            }
            pairs.students.push(student.sources[at]);
            pairs.teachers.push(teacher.sources[by]);
            pairs.targets.push(expected);
            pairs.weights.push(student.weights[at].clamp(0.0, f64::INFINITY));
            pairs.ids.push(own);
        }
        Ok(pairs)
    }

    /// The same pairs under the weights that `student`, the terms of the student's batch, have now:
    /// of a rollout that was masked none is left.
    ///
    /// # Errors
    /// A pair whose term is not there.
    pub fn reweighted(&self, student: &BatchTerms) -> Result<Self, TrainError> {
        let places = student.places()?;
        let weight = |&(generation, offset): &(u32, u32)| {
            let side = "student";
            let at = places.get(&(generation, offset));
            at.map(|&at| student.weights[at].clamp(0.0, f64::INFINITY))
                .ok_or(ObjectiveError::Unpaired { generation, offset, side })
        };
        let weights = self.ids.iter().map(weight).collect::<Result<_, _>>()?;
        Ok(Self { weights, ..self.clone() })
    }

    /// What [`Divergence`](super::Divergence) relies on, since each field may be written by hand.
    pub(super) fn check(&self, student_rows: usize, teacher_rows: usize) -> Result<(), TrainError> {
        let terms = self.targets.len();
        let lengths = [
            ("students of pairs", self.students.len()),
            ("teachers of pairs", self.teachers.len()),
            ("weights of pairs", self.weights.len()),
            ("ids of pairs", self.ids.len()),
        ];
        if let Some((what, found)) = lengths.into_iter().find(|&(_, length)| length != terms) {
            return Err(ObjectiveError::SignalLength { what, terms, found }.into());
        }
        for (side, list, rows) in
            [("student", &self.students, student_rows), ("teacher", &self.teachers, teacher_rows)]
        {
            let outside = |row: &i64| usize::try_from(*row).map_or(true, |row| row >= rows);
            if let Some(pair) = list.iter().position(outside) {
                return Err(ObjectiveError::Row { pair, side, row: list[pair], rows }.into());
            }
        }
        match self.weights.iter().position(|weight| !weight.is_finite()) {
            None => Ok(()),
            Some(at) => {
                let ((generation, offset), value) = (self.ids[at], self.weights[at]);
                Err(ObjectiveError::SignalValue {
                    what: "weight of a pair",
                    generation,
                    offset,
                    value,
                }
                .into())
            }
        }
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }
}
