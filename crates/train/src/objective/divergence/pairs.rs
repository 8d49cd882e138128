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
/// In a tree a teacher is another branch with aligned targets; which batch, layout or model it comes from makes no difference here.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pairs {
    /// Index into the student's flattened hidden states, per pair.
    pub students: Vec<i64>,
    /// Index into the teacher's flattened hidden states, per pair.
    pub teachers: Vec<i64>,
    /// The token that was sampled, per pair.
    pub targets: Vec<u32>,
    /// Weight: 1, or 0 where the student's term has no loss, per pair.
    pub weights: Vec<f64>,
    /// Generation and offset of the student's term, per pair.
    pub ids: Vec<(u32, u32)>,
}

impl Pairs {
    /// The pairs of some aligned terms.
    ///
    /// # Errors
    /// A term that its batch does not have, or whose target is another token on the other side.
    pub fn new(
        student: &BatchTerms,
        teacher: &BatchTerms,
        aligned: impl IntoIterator<Item = Alignment>,
    ) -> Result<Self, TrainError> {
        let place = |terms: &BatchTerms| -> HashMap<(u32, u32), usize> { terms.ids.iter().copied().zip(0..).collect() };
        let (students, teachers) = (place(student), place(teacher));
        let find = |places: &HashMap<(u32, u32), usize>, (generation, offset), side| {
            places.get(&(generation, offset)).copied().ok_or(ObjectiveError::Unpaired { generation, offset, side })
        };
        let mut pairs = Self::default();
        for Alignment { student: own, teacher: other } in aligned {
            let (at, by) = (find(&students, own, "student")?, find(&teachers, other, "teacher")?);
            let (expected, found) = (student.targets[at], teacher.targets[by]);
            if expected != found {
                return Err(ObjectiveError::Misaligned { generation: own.0, offset: own.1, expected, found }.into());
            }
            pairs.students.push(student.sources[at]);
            pairs.teachers.push(teacher.sources[by]);
            pairs.targets.push(expected);
            pairs.weights.push(if student.weights[at] == 0.0 { 0.0 } else { 1.0 });
            pairs.ids.push(own);
        }
        Ok(pairs)
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
