//! A layout's arrays as a file that other frameworks read.
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use pleach_layout::{Layout, Sequence};
use safetensors::{Dtype, View};

use crate::output;

/// How a mask is written down.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MaskForm {
    /// Every pair: mask [1, 1, T, T] of booleans as [batch, head, query, key], true = may attend
    Dense,
    /// One number a key: ends [T]; query i may attend to key j if and only if j <= i < ends[j]
    Intervals,
}

/// One array of a sequence.
enum Array<'s> {
    /// The mask, made only when it is written.
    Mask {
        sequence: &'s Sequence,
        window: Option<u32>,
        shape: [usize; 4],
    },
    Integers {
        values: Vec<i64>,
        shape: [usize; 1],
    },
    Floats {
        values: Vec<f64>,
        shape: [usize; 1],
    },
}

impl<'s> Array<'s> {
    fn mask(sequence: &'s Sequence, window: Option<u32>) -> Self {
        Self::Mask { sequence, window, shape: [1, 1, sequence.len(), sequence.len()] }
    }

    fn integers<T: Into<i64>>(values: impl Iterator<Item = T>) -> Self {
        let values: Vec<i64> = values.map(Into::into).collect();
        Self::Integers { shape: [values.len()], values }
    }

    fn floats(values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.collect();
        Self::Floats { shape: [values.len()], values }
    }
}

impl View for Array<'_> {
    fn dtype(&self) -> Dtype {
        match self {
            Self::Mask { .. } => Dtype::BOOL,
            Self::Integers { .. } => Dtype::I64,
            Self::Floats { .. } => Dtype::F64,
        }
    }

    fn shape(&self) -> &[usize] {
        match self {
            Self::Mask { shape, .. } => shape,
            Self::Integers { shape, .. } | Self::Floats { shape, .. } => shape,
        }
    }

    fn data(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Mask { sequence, window, .. } => Cow::Owned(dense(sequence, *window)),
            Self::Integers { values, .. } => {
                Cow::Owned(values.iter().flat_map(|value| value.to_le_bytes()).collect())
            }
            Self::Floats { values, .. } => {
                Cow::Owned(values.iter().flat_map(|value| value.to_le_bytes()).collect())
            }
        }
    }

    fn data_len(&self) -> usize {
        match self {
            Self::Mask { sequence, .. } => sequence.len() * sequence.len(),
            Self::Integers { values, .. } => values.len() * size_of::<i64>(),
            Self::Floats { values, .. } => values.len() * size_of::<f64>(),
        }
    }
}

/// The mask row by row, a byte a pair: 1 where query i may attend to key j, which is where
/// `j <= i < ends[j]` and, under a window, `positions[i] - positions[j] < window`.
fn dense(sequence: &Sequence, window: Option<u32>) -> Vec<u8> {
    let (time, positions) = (sequence.len(), &sequence.positions);
    let mut pairs = vec![0; time * time];
    let window = window.map_or(i64::MAX, i64::from);
    for (query, row) in pairs.chunks_exact_mut(time.max(1)).enumerate() {
        let keys = row[..=query].iter_mut().zip(&sequence.ends).zip(positions);
        for ((pair, &end), &position) in keys {
            let near = i64::from(positions[query]) - i64::from(position) < window;
            *pair = u8::from(near && (query as i64) < i64::from(end));
        }
    }
    pairs
}

/// Writes the arrays of `layout` as safetensors: the mask, tokens, positions and loss terms of each
/// sequence.
pub(crate) fn write(
    layout: &Layout,
    form: MaskForm,
    window: Option<u32>,
    out: &Path,
) -> Result<()> {
    if form == MaskForm::Dense {
        refuse_what_does_not_fit(layout)?;
    }
    let mut arrays = Vec::new();
    for (index, sequence) in layout.sequences.iter().enumerate() {
        let name = |array: &str| match layout.sequences.len() {
            1 => array.to_owned(),
            _ => format!("{array}.{index}"),
        };
        let terms = &sequence.terms;
        arrays.extend([
            match form {
                MaskForm::Dense => (name("mask"), Array::mask(sequence, window)),
                MaskForm::Intervals => {
                    (name("ends"), Array::integers(sequence.ends.iter().copied()))
                }
            },
            (name("tokens"), Array::integers(sequence.tokens.iter().copied())),
            (name("positions"), Array::integers(sequence.positions.iter().copied())),
            (name("term_sources"), Array::integers(terms.iter().map(|term| term.source))),
            (name("term_targets"), Array::integers(terms.iter().map(|term| term.target))),
            (name("term_generations"), Array::integers(terms.iter().map(|term| term.generation))),
            (name("term_offsets"), Array::integers(terms.iter().map(|term| term.offset))),
            (name("term_weights"), Array::floats(terms.iter().map(|term| term.weight))),
        ]);
    }
    let mut about = HashMap::from([
        ("layout".to_owned(), layout.kind.name().to_owned()),
        ("mask".to_owned(), "query i, key j: true = may attend = j <= i < ends[j]".to_owned()),
    ]);
    if let Some(window) = window {
        about.insert("window".to_owned(), window.to_string());
    }
    safetensors::serialize_to_file(arrays, Some(about), out).with_context(|| {
        format!("{}: cannot be written; choose another path for --out", out.display())
    })
}

fn refuse_what_does_not_fit(layout: &Layout) -> Result<()> {
    let square =
        |sequence: &Sequence| (sequence.len() as u64).saturating_mul(sequence.len() as u64);
    let needed = layout.sequences.iter().map(square).fold(0, u64::saturating_add);
    let available = crate::free_memory::available();
    if !crate::free_memory::fits(needed, available) {
        bail!(
            "the dense mask of {} tokens takes {}, {} are free; write --mask intervals, one number a token, or --clip the rollout",
            output::size(layout.tokens()),
            output::bytes(needed),
            output::bytes(available)
        );
    }
    Ok(())
}
