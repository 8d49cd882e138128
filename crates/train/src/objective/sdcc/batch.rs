use crate::{
    batch::Batch,
    error::TrainError,
    objective::divergence::{Alignment, Pairs},
};
use burn::tensor::Device;
use pleach_layout::{Layouts, Sequence};

/// One tree for SDCC: `compressed` for the student, all live views in one packed sequence for the
/// teacher, and the terms at which the two differ.
///
/// The shared trunk of the live views is read once by the teacher, however many views there are.
#[derive(Debug, Clone)]
pub struct SdccBatch {
    /// What the student runs over.
    pub student: Batch,
    /// What the teacher runs over.
    pub teacher: Batch,
    /// The diverging terms in both.
    pub pairs: Pairs,
}

impl SdccBatch {
    /// The batch of a tree, on the device of the model.
    ///
    /// Where only the requests of a rollout are known,
    /// [`records_of_requests`](pleach_tree::records_of_requests) makes records of them: the request
    /// before a junction is the view that its tokens were sampled under, so it is the teacher's
    /// prefix.
    ///
    /// # Errors
    /// Trees under `kv_evict`, of more tokens than an index holds, or without a token.
    pub fn new(layouts: &Layouts<'_>, device: &Device) -> Result<Self, TrainError> {
        let (compressed, packed) = (layouts.compressed()?.sequences, layouts.packed()?.sequences);
        let rows = |sequences: &[Sequence]| {
            let filled: Vec<&Sequence> =
                sequences.iter().filter(|sequence| !sequence.is_empty()).collect();
            Batch::new(&filled, device)
        };
        let (student, teacher) = (rows(&compressed)?, rows(&packed)?);
        let diverging = layouts.diverging()?.into_iter();
        let aligned = diverging.map(|id| Alignment { student: id, teacher: id });
        let pairs = Pairs::new(student.terms(), teacher.terms(), aligned)?;
        Ok(Self { student, teacher, pairs })
    }
}
