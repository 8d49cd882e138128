use crate::error::{ObjectiveError, TrainError};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use pleach_kernels::{KernelError, Rotary, TreeMask};
use pleach_layout::{Sequence, Term, TermId};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

/// Rows of a layout as device tensors, padded to the longest.
///
/// A padding token sees nothing and nobody sees it. Validated once; models and objectives rely on
/// it.
#[derive(Debug, Clone)]
pub struct Batch {
    tokens_bt: Tensor<2, Int>,
    positions_bt: Tensor<2, Int>,
    mask: TreeMask,
    windowed: Arc<Mutex<BTreeMap<u32, TreeMask>>>,
    positions: Vec<Vec<i32>>,
    terms: BatchTerms,
    largest_token: u32,
}

/// The loss terms of a batch, flat: row by row, in the order of each sequence.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BatchTerms {
    /// Index into the flattened `[batch * time]` hidden states, per term.
    pub sources: Vec<i64>,
    /// Token id that is predicted, per term.
    pub targets: Vec<u32>,
    /// Loss weight, per term.
    pub weights: Vec<f64>,
    /// Which sampled token is predicted, per term; a name within one tree, so what goes by names takes the
    /// batch of one tree.
    pub ids: Vec<TermId>,
}

impl BatchTerms {
    /// Number of terms.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there are no terms.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// What objectives rely on, since each field may be written by hand: one entry a term in every
    /// array, weights that are numbers, and sources among `rows` hidden states.
    pub(crate) fn check(&self, rows: usize) -> Result<(), TrainError> {
        let terms = self.len();
        let lengths = [
            ("sources of terms", self.sources.len()),
            ("weights of terms", self.weights.len()),
            ("ids of terms", self.ids.len()),
        ];
        if let Some((what, found)) = lengths.into_iter().find(|&(_, length)| length != terms) {
            return Err(ObjectiveError::SignalLength { what, terms, found }.into());
        }
        for (&id, (&source, &weight)) in self.ids.iter().zip(self.sources.iter().zip(&self.weights))
        {
            if !weight.is_finite() {
                return Err(weight_error(id, weight));
            }
            if !usize::try_from(source).is_ok_and(|row| row < rows) {
                let TermId { generation, offset } = id;
                return Err(
                    ObjectiveError::TermRow { generation, offset, row: source, rows }.into()
                );
            }
        }
        Ok(())
    }

    /// Where the term of each name stands.
    ///
    /// # Errors
    /// A name that stands twice: names are of one tree.
    pub(crate) fn places(&self) -> Result<HashMap<TermId, usize>, TrainError> {
        let mut places = HashMap::with_capacity(self.ids.len());
        for (at, &id) in self.ids.iter().enumerate() {
            if places.insert(id, at).is_some() {
                let TermId { generation, offset } = id;
                return Err(ObjectiveError::Duplicate { generation, offset }.into());
            }
        }
        Ok(places)
    }
}

impl Batch {
    /// The batch of a layout, of one sequence, or of any sequences, one row each, on the device of
    /// the model.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # #[cfg(feature = "flex")] {
    /// use burn::tensor::Device;
    /// use pleach_layout::Layouts;
    /// use pleach_train::Batch;
    /// # let records = r#"{"t":"header","version":1,"harness":"example","fidelity":"token"}
    /// # {"t":"segment","id":0,"role":"user","origin":"human","tokens":[5,6,7]}
    /// # {"t":"append","context":0,"from":null,"segments":[0]}
    /// # {"t":"segment","id":1,"role":"assistant","origin":"policy","tokens":[8,9]}
    /// # {"t":"generation","id":0,"context":0,"output":[1]}
    /// # "#;
    /// # use pleach_tree::{BranchTree, ReadOptions};
    /// # let (tree, _) = BranchTree::read(records.as_bytes(), "example", ReadOptions::STRICT)?;
    /// let packed = Layouts::new(&tree)?.packed()?;
    /// let batch = Batch::new(&packed, &Device::flex().autodiff())?;
    /// assert_eq!((batch.dims(), batch.terms().len()), ([1, 5], 2));
    /// // Or of sequences by themselves, from several trees where one likes.
    /// assert_eq!(Batch::new([&packed.sequences[0]; 2], &Device::flex())?.dims(), [2, 5]);
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// No sequence or an empty one, arrays of different lengths, terms outside their row or of a
    /// weight that is no number, positions before 0, intervals that are not valid.
    pub fn new<I>(sequences: I, device: &Device) -> Result<Self, TrainError>
    where
        I: IntoIterator,
        I::Item: AsRef<Sequence>,
    {
        let held: Vec<I::Item> = sequences.into_iter().collect();
        let sequences: Vec<&Sequence> = held.iter().map(AsRef::as_ref).collect();
        let time = check(&sequences)?;
        let mut tokens = Vec::with_capacity(sequences.len() * time);
        let mut positions = Vec::with_capacity(sequences.len() * time);
        let mut terms = BatchTerms::default();
        for (row, sequence) in sequences.iter().enumerate() {
            let padding = time - sequence.tokens.len();
            tokens.extend(sequence.tokens.iter().copied().chain(std::iter::repeat_n(0, padding)));
            positions.extend_from_slice(&sequence.positions);
            positions.resize((row + 1) * time, 0);
            for term in &sequence.terms {
                terms.sources.push((row * time) as i64 + i64::from(term.source));
                terms.targets.push(term.target);
                terms.weights.push(term.weight);
                terms.ids.push(term.id());
            }
        }
        let ends: Vec<&[i32]> = sequences.iter().map(|sequence| &*sequence.ends).collect();
        let plain = device.clone().without_autodiff();
        let shape = [sequences.len(), time];
        let largest_token = tokens.iter().copied().max().unwrap_or_default();
        if i32::try_from(largest_token).is_err() {
            return Err(TrainError::Vocabulary { token: largest_token, vocabulary: 1 << 31 });
        }
        let tokens: Vec<i64> = tokens.into_iter().map(i64::from).collect();
        Ok(Self {
            tokens_bt: Tensor::from_data(TensorData::new(tokens, shape), &plain),
            positions_bt: Tensor::from_data(TensorData::new(positions, shape), &plain),
            mask: TreeMask::new(&ends, &plain)?,
            windowed: Arc::default(),
            positions: sequences.iter().map(|sequence| sequence.positions.clone()).collect(),
            terms,
            largest_token,
        })
    }

    /// Rows and tokens per row.
    pub fn dims(&self) -> [usize; 2] {
        self.mask.dims()
    }

    /// Token ids, `[batch, time]`, padding 0.
    pub fn tokens_bt(&self) -> Tensor<2, Int> {
        self.tokens_bt.clone()
    }

    /// Position of each token for rotary embeddings, `[batch, time]`, padding 0.
    pub fn positions_bt(&self) -> Tensor<2, Int> {
        self.positions_bt.clone()
    }

    /// The positions on the host, one vector a row, without padding.
    pub fn position_rows(&self) -> &[Vec<i32>] {
        &self.positions
    }

    /// Who sees whom.
    pub fn mask(&self) -> &TreeMask {
        &self.mask
    }

    /// Who sees whom within a sliding window of so many tokens; planned once per batch, like
    /// [`mask`](Self::mask).
    ///
    /// # Errors
    /// A window of 0.
    pub fn windowed_mask(&self, window: u32) -> Result<TreeMask, TrainError> {
        let mut windowed = self.windowed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mask) = windowed.get(&window) {
            return Ok(mask.clone());
        }
        let mask = self.mask.with_window(&self.positions, window)?;
        windowed.insert(window, mask.clone());
        Ok(mask)
    }

    /// The loss terms.
    pub fn terms(&self) -> &BatchTerms {
        &self.terms
    }

    /// Checks that every token id of the rows is below `vocabulary`, as all objectives do.
    ///
    /// # Errors
    /// [`TrainError::Vocabulary`].
    pub fn check_vocabulary(&self, vocabulary: usize) -> Result<(), TrainError> {
        let token = self.largest_token;
        match (token as usize) < vocabulary {
            true => Ok(()),
            false => Err(TrainError::Vocabulary { token, vocabulary }),
        }
    }

    /// Rotary embeddings of the batch's positions, for heads of `head_dim` features with
    /// frequencies `theta^(-2 i / head_dim)` (RoFormer, arXiv 2104.09864).
    ///
    /// # Errors
    /// An odd or empty head dimension, a theta that is not above 0, and a dtype that is no float.
    pub fn rotary(&self, head_dim: usize, theta: f64, dtype: DType) -> Result<Rotary, TrainError> {
        let frequencies: Vec<f64> = (0..head_dim / 2)
            .map(|index| theta.powf(-2.0 * index as f64 / head_dim as f64))
            .collect();
        if frequencies.is_empty() || head_dim % 2 == 1 {
            let frequencies = frequencies.len();
            return Err(KernelError::RotaryWidth { head_dim, frequencies }.into());
        }
        Ok(Rotary::new(&self.positions, &frequencies, dtype, &self.tokens_bt.device())?)
    }

    /// The largest token id of the rows.
    pub fn largest_token(&self) -> u32 {
        self.largest_token
    }
}

fn check(sequences: &[&Sequence]) -> Result<usize, TrainError> {
    if sequences.is_empty() {
        return Err(TrainError::EmptyRow { row: 0 });
    }
    for (row, sequence) in sequences.iter().enumerate() {
        let tokens = sequence.tokens.len();
        if tokens == 0 {
            return Err(TrainError::EmptyRow { row });
        }
        let lengths = [("positions", sequence.positions.len()), ("ends", sequence.ends.len())];
        for (array, found) in lengths {
            if found != tokens {
                return Err(TrainError::ArrayLength { row, array, tokens, found });
            }
        }
        let negative = sequence.positions.iter().position(|&position| position < 0);
        if let Some(token) = negative {
            let (array, position) = ("positions", sequence.positions[token]);
            let kernel = KernelError::NegativePosition { array, row, token, position };
            return Err(kernel.into());
        }
        if let Some(term) = sequence.terms.iter().find(|term| !term.weight.is_finite()) {
            return Err(weight_error(term.id(), term.weight));
        }
        if let Some(term) = sequence.terms.iter().find(|term| term.source as usize >= tokens) {
            return Err(outside(row, term, tokens));
        }
    }
    Ok(sequences.iter().map(|sequence| sequence.tokens.len()).max().unwrap_or_default())
}

fn weight_error(TermId { generation, offset }: TermId, value: f64) -> TrainError {
    ObjectiveError::SignalValue { what: "loss weight", generation, offset, value }.into()
}

fn outside(row: usize, term: &Term, tokens: usize) -> TrainError {
    TrainError::TermSource {
        row,
        generation: term.generation,
        offset: term.offset,
        source_index: term.source,
        tokens,
    }
}
