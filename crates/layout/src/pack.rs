use crate::sequence::index;
use crate::{LayoutError, Sequence, Term};

/// Where one sequence stands in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Index of the sequence among those that were packed.
    pub sequence: usize,
    /// First token in the row.
    pub start: usize,
    /// Number of tokens.
    pub len: usize,
    /// First term in the row.
    pub first_term: usize,
    /// Number of terms.
    pub terms: usize,
}

/// Several sequences side by side in one row, none of which sees another.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    /// The row.
    pub sequence: Sequence,
    /// What stands where, in the order of the row.
    pub members: Vec<Member>,
}

/// Packs trees, or rollouts of groups, into rows of at most `budget` tokens.
///
/// First-fit decreasing, ties in the order given, so the same input gives the same rows. A sequence
/// is never cut: its interval ends keep it apart from its neighbours. Empty sequences take no place
/// but are members, so that nothing is lost.
///
/// ```
/// use pleach_layout::{Sequence, pack};
///
/// let causal = |tokens: &[u32]| Sequence::causal(tokens.to_vec(), Vec::new());
/// let rows = pack(&[causal(&[1, 2])?, causal(&[3, 4, 5])?, causal(&[6])?], 4)?;
/// let row = &rows[0].sequence;
/// assert_eq!((&row.tokens[..], &row.positions[..]), (&[3, 4, 5, 6][..], &[0, 1, 2, 0][..]));
/// assert!(row.sees(2, 0) && !row.sees(3, 2));
/// // Which sequence stands where.
/// assert_eq!((rows[0].members[1].sequence, rows[0].members[1].start), (2, 3));
/// # Ok::<(), pleach_layout::LayoutError>(())
/// ```
///
/// # Errors
/// [`LayoutError::OverBudget`] for a sequence longer than a row; arrays that do not fit together, as
/// [`Sequence::check`] finds them.
pub fn pack(sequences: &[Sequence], budget: usize) -> Result<Vec<Row>, LayoutError> {
    index(budget)?;
    let mut order: Vec<usize> = (0..sequences.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(sequences[at].len()));
    let mut rows: Vec<Row> = Vec::new();
    for at in order {
        sequences[at].check()?;
        let tokens = sequences[at].len();
        if tokens > budget {
            return Err(LayoutError::OverBudget { index: at, tokens, budget });
        }
        let fits = |row: &Row| row.sequence.len() + tokens <= budget;
        let row = match rows.iter().position(fits) {
            Some(row) => row,
            None => {
                rows.push(Row::default());
                rows.len() - 1
            }
        };
        rows[row].push(at, &sequences[at])?;
    }
    Ok(rows)
}

impl Row {
    fn push(&mut self, at: usize, sequence: &Sequence) -> Result<(), LayoutError> {
        let row = &mut self.sequence;
        let (start, first_term) = (row.len(), row.terms.len());
        let shift = index(start)?;
        row.tokens.extend_from_slice(&sequence.tokens);
        row.positions.extend_from_slice(&sequence.positions);
        row.ends.extend(sequence.ends.iter().map(|end| end + shift));
        let terms = sequence.terms.iter();
        row.terms.extend(terms.map(|term| Term { source: term.source + start as u32, ..*term }));
        let (len, terms) = (sequence.len(), sequence.terms.len());
        self.members.push(Member { sequence: at, start, len, first_term, terms });
        Ok(())
    }
}
