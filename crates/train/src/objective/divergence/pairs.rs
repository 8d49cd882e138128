use crate::{
    batch::BatchTerms,
    error::{ObjectiveError, TrainError},
};
use pleach_layout::TermId;
use std::collections::HashMap;

/// A loss term under two conditionings: the student's branch and the teacher's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Alignment {
    /// The term in the student's batch.
    pub student: TermId,
    /// The term in the teacher's batch.
    pub teacher: TermId,
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
    /// The student's term, per pair.
    pub ids: Vec<TermId>,
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
        let find = |places: &HashMap<TermId, usize>, id: TermId, side| {
            places.get(&id).copied().ok_or_else(|| unpaired(id, side))
        };
        let mut pairs = Self::default();
        for Alignment { student: own, teacher: other } in aligned {
            let (at, by) = (find(&students, own, "student")?, find(&teachers, other, "teacher")?);
            let (expected, found) = (student.targets[at], teacher.targets[by]);
            if expected != found {
                return Err(ObjectiveError::Misaligned {
                    generation: own.generation,
                    offset: own.offset,
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
        let weight = |id: &TermId| {
            let at = places.get(id).ok_or_else(|| unpaired(*id, "student"))?;
            Ok::<_, ObjectiveError>(student.weights[*at].clamp(0.0, f64::INFINITY))
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
                let (TermId { generation, offset }, value) = (self.ids[at], self.weights[at]);
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

fn unpaired(TermId { generation, offset }: TermId, side: &'static str) -> ObjectiveError {
    ObjectiveError::Unpaired { generation, offset, side }
}
