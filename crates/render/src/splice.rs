//! Long texts without special tokens in them, encoded from where another text with the same
//! beginning leaves off.
use super::RenderError;
use super::encode::{Encoder, Tokens};
use super::view::Rendering;

/// A stretch of this many bytes between two special tokens is worth it.
pub(super) const LONG: usize = 1 << 16;
/// How many bytes before the first difference are not taken over, since a tokenizer looks ahead.
const MARGIN: usize = 256;
/// How many tokens must agree before the rest is taken over.
const OVERLAP: usize = 64;

/// The tokens of `text`, its beginning taken from the known rendering that has most of it; `None`
/// where none has enough, or where what is encoded anew does not fall into step with what is taken
/// over.
pub(super) fn encode<'k>(
    text: &str,
    known: impl Iterator<Item = &'k Rendering>,
    encoder: &Encoder,
) -> Result<Option<Tokens>, RenderError> {
    let Some((common, known)) = known
        .map(|known| (common_prefix(text, &known.text), &known.tokens))
        .max_by_key(|(len, _)| *len)
    else {
        return Ok(None);
    };
    if common < LONG {
        return Ok(None);
    }
    let end = known.starts.partition_point(|&start| (start as usize) < common - MARGIN);
    let Some(from) = end.checked_sub(2 * OVERLAP).map(|at| known.starts[at] as usize) else {
        return Ok(None);
    };
    if !text.is_char_boundary(from) {
        return Ok(None);
    }
    let mut tail = encoder.whole(&text[from..])?;
    let shift = u32::try_from(from).unwrap_or(u32::MAX);
    tail.starts.iter_mut().for_each(|start| *start = start.saturating_add(shift));
    let step = end - OVERLAP;
    let joint = tail.starts.partition_point(|&start| start < known.starts[step]);
    let agrees = tail.ids.get(joint..joint + OVERLAP) == Some(&known.ids[step..end])
        && tail.starts.get(joint..joint + OVERLAP) == Some(&known.starts[step..end]);
    if !agrees {
        return Ok(None);
    }
    let ids = [&known.ids[..end], &tail.ids[joint + OVERLAP..]].concat();
    let starts = [&known.starts[..end], &tail.starts[joint + OVERLAP..]].concat();
    Ok(Some(Tokens { ids, starts }))
}

fn common_prefix(one: &str, other: &str) -> usize {
    const BLOCK: usize = 1 << 10;
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let blocks = one
        .chunks(BLOCK)
        .zip(other.chunks(BLOCK))
        .take_while(|(a, b)| a == b && a.len() == BLOCK)
        .count();
    let rest = blocks * BLOCK;
    rest + one[rest..].iter().zip(&other[rest..]).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::tokenizer;

    fn encoder() -> Encoder {
        Encoder::hugging_face(
            tokenizer::byte_level(false).to_string(false).unwrap().as_bytes(),
            &[],
        )
        .unwrap()
    }

    fn known(text: String, encoder: &Encoder) -> Rendering {
        let tokens = encoder.whole(&text).unwrap();
        Rendering { text, tokens, regions: Vec::new(), trained: Vec::new() }
    }

    fn words(seed: usize, count: usize) -> String {
        let word = |at: usize| {
            ["hello", " there", "\n\n", " be", "ü", "  ", "brief\n"][(at * at + seed) % 7]
        };
        (0..count).map(word).collect()
    }

    #[test]
    fn a_spliced_text_has_the_tokens_of_the_whole() {
        let encoder = encoder();
        let known =
            [known(words(1, 30_000) + "\n\nassistant", &encoder), known("short".into(), &encoder)];
        for end in ["", "\n", "\n\nassistant said so", " then\n\n\nhello"] {
            let text = words(1, 30_000) + end;
            let spliced = encode(&text, known.iter(), &encoder).unwrap();
            assert_eq!(spliced, Some(encoder.whole(&text).unwrap()), "{end:?}");
        }
    }

    #[test]
    fn a_text_that_shares_too_little_is_not_spliced() {
        let encoder = encoder();
        let known = [known(words(1, 30_000), &encoder)];
        assert_eq!(encode(&words(2, 30_000), known.iter(), &encoder).unwrap(), None);
        assert_eq!(encode("", [].into_iter(), &encoder).unwrap(), None);
    }
}
