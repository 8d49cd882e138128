use super::certificate::{Residual, SdccCertificate};
use crate::{
    batch::Batch,
    error::TrainError,
    evaluation::{Placement, read},
    model::CausalModel,
    objective::{
        divergence::{Alignment, DivergenceConfig, Pairs},
        head::hidden_states,
    },
};
use pleach_layout::{Layouts, Sequence, Term, TermId};
use std::collections::HashSet;

/// The KL and the total variation at every diverging term of a tree, over the whole vocabulary and
/// without gradients.
///
/// The teacher reads all live views in one packed pass; the student's sequences run one at a time.
///
/// # Errors
/// Trees under `kv_evict`; tokens that a model cannot take; a student that rules out what the
/// teacher may say.
pub fn residuals<M: CausalModel>(
    student: &M,
    teacher: &M,
    layouts: &Layouts<'_>,
) -> Result<Vec<Residual>, TrainError> {
    let diverging: HashSet<TermId> = layouts.diverging()?.into_iter().collect();
    if diverging.is_empty() {
        return Ok(Vec::new());
    }
    let (student, teacher) = (student.valid(), teacher.valid());
    let packed = layouts.packed()?.sequences;
    let live = Batch::new(&packed, &Placement::of(&teacher)?.device)?;
    let teacher_btc = hidden_states(&teacher, &live)?;
    let divergence = DivergenceConfig::new().init();
    let device = Placement::of(&student)?.device;
    let mut residuals = Vec::new();
    for sequence in layouts.compressed()?.sequences.iter().filter(|sequence| !sequence.is_empty()) {
        let batch = Batch::new([sequence], &device)?;
        let aligned = batch.terms().ids.iter().filter(|id| diverging.contains(id));
        let pairs = Pairs::new(
            batch.terms(),
            live.terms(),
            aligned.map(|&id| Alignment { student: id, teacher: id }),
        )?;
        if pairs.is_empty() {
            continue;
        }
        let student_btc = hidden_states(&student, &batch)?;
        let output = divergence.forward_hidden(
            (&student, student_btc),
            (&teacher, teacher_btc.clone()),
            &pairs,
        )?;
        let variations =
            output.total_variation_n.as_ref().map(read).transpose()?.unwrap_or_default();
        let of_term = pairs.ids.iter().zip(read(&output.divergence_n)?).zip(variations);
        residuals.extend(of_term.map(|((&TermId { generation, offset }, kl), total_variation)| {
            Residual { generation, offset, kl, total_variation }
        }));
    }
    Ok(residuals)
}

/// The certificate of a tree under a student and a teacher.
///
/// # Errors
/// As [`residuals`].
pub fn certify<M: CausalModel>(
    student: &M,
    teacher: &M,
    layouts: &Layouts<'_>,
) -> Result<SdccCertificate, TrainError> {
    let residuals = residuals(student, teacher, layouts)?;
    let compressed = layouts.compressed()?.sequences;
    let ids = |sequence: &Sequence| sequence.terms.iter().map(Term::id).collect::<Vec<_>>();
    Ok(SdccCertificate::new(&residuals, compressed.iter().flat_map(ids), &layouts.eras()))
}
