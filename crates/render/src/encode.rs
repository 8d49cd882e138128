use aho_corasick::{AhoCorasick, MatchKind};
use rustc_hash::{FxHashMap, FxHashSet};
use tokenizers::{AddedToken, Tokenizer};

use super::RenderError;

/// Token ids of a text, and for each the byte of the text at which it starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    pub(super) ids: Vec<u32>,
    pub(super) starts: Vec<u32>,
}

/// What makes tokens of text.
#[derive(Debug)]
pub(super) struct Encoder {
    model: Model,
    borders: Option<Borders>,
    /// Tokens that the tokenizer calls special.
    special: FxHashSet<u32>,
    /// Those of them that end what a model says.
    ends: FxHashSet<u32>,
}

/// Texts between borders that were encoded before.
#[derive(Debug, Default)]
pub(super) struct Cache(FxHashMap<Key, Tokens>);

#[derive(Debug)]
enum Model {
    Bytes,
    HuggingFace(Box<Tokenizer>),
}

/// Added tokens that cut a text before anything else is done with it, so that what stands between
/// two is encoded by itself.
#[derive(Debug)]
struct Borders {
    finder: AhoCorasick,
    /// Id of each pattern; `None` for one that reaches into its neighbours.
    ids: Vec<Option<u32>>,
}

/// A border in a text: its first byte, the first behind it, and its id.
type Cut = (usize, usize, u32);

/// A text between two borders, with the borders, since a tokenizer may treat the head of a text
/// differently.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    text: Box<str>,
    before: Option<u32>,
    after: Option<u32>,
}

impl Encoder {
    /// One id a byte, and an id each for ChatML's two special tokens.
    pub(super) fn bytes() -> Self {
        let texts = [("<|im_start|>", Some(256)), ("<|im_end|>", Some(257))];
        let borders = borders(texts.iter().map(|(text, id)| ((*text).to_owned(), *id)).collect());
        let special = FxHashSet::from_iter([256, 257]);
        Self { model: Model::Bytes, borders, special, ends: FxHashSet::from_iter([257]) }
    }

    /// A Hugging Face tokenizer with `more` added tokens, those that it does not have, without
    /// truncation, padding and what a post-processor does to
    /// offsets.
    pub(super) fn hugging_face(json: &[u8], more: &[AddedToken]) -> Result<Self, String> {
        let mut tokenizer = Tokenizer::from_bytes(json).map_err(|error| error.to_string())?;
        let known: FxHashSet<String> =
            tokenizer.get_added_tokens_decoder().into_values().map(|token| token.content).collect();
        for token in more.iter().filter(|token| !known.contains(&token.content)) {
            let added = match token.special {
                true => tokenizer.add_special_tokens([token.clone()]),
                false => tokenizer.add_tokens([token.clone()]),
            };
            added.map_err(|error| error.to_string())?;
        }
        tokenizer.with_truncation(None).map_err(|error| error.to_string())?;
        tokenizer.with_padding(None);
        tokenizer.with_post_processor(None::<tokenizers::PostProcessorWrapper>);
        let mut added: Vec<(u32, AddedToken)> =
            tokenizer.get_added_tokens_decoder().into_iter().collect();
        added.sort_by_key(|(id, _)| *id);
        let special = added.iter().filter(|(_, token)| token.special).map(|(id, _)| *id).collect();
        let cuts = |token: &AddedToken| {
            let alone = !token.lstrip && !token.rstrip && !token.single_word;
            alone && token.content.trim() == token.content
        };
        let texts = added
            .into_iter()
            .filter(|(_, token)| !token.normalized && !token.content.is_empty())
            .map(|(id, token)| (token.content.clone(), cuts(&token).then_some(id)))
            .collect();
        Ok(Self {
            model: Model::HuggingFace(Box::new(tokenizer)),
            borders: borders(texts),
            special,
            ends: FxHashSet::default(),
        })
    }

    /// The same, where these ids end what a model says.
    pub(super) fn with_ends(self, ends: impl IntoIterator<Item = u32>) -> Self {
        Self { ends: ends.into_iter().collect(), ..self }
    }

    /// Id of a token by its text.
    pub(super) fn id(&self, token: &str) -> Option<u32> {
        match &self.model {
            Model::Bytes => None,
            Model::HuggingFace(tokenizer) => tokenizer.token_to_id(token),
        }
    }

    /// How many of the tokens behind an answer there are up to the first that is known to end a
    /// turn.
    pub(super) fn known_end(&self, behind: &[u32]) -> Option<usize> {
        Some(behind.iter().position(|id| self.ends.contains(id))? + 1)
    }

    /// How many of the tokens behind an answer there are up to the end of the first special ones.
    pub(super) fn special_end(&self, behind: &[u32]) -> Option<usize> {
        let first = behind.iter().position(|id| self.special.contains(id))?;
        let run = behind[first..].iter().take_while(|id| self.special.contains(id)).count();
        Some(first + run)
    }

    /// One more than the greatest id.
    pub(super) fn vocab_size(&self) -> u32 {
        match &self.model {
            Model::Bytes => 258,
            Model::HuggingFace(tokenizer) => {
                tokenizer.get_vocab(true).into_values().max().map_or(0, |id| id + 1)
            }
        }
    }

    /// Whether texts are encoded in pieces.
    pub(super) fn in_pieces(&self) -> bool {
        self.borders.is_some() && matches!(self.model, Model::HuggingFace(_))
    }

    /// Whether no stretch of a text between two borders is longer than `most` bytes.
    pub(super) fn is_cut_up(&self, text: &str, most: usize) -> bool {
        let Some(borders) = &self.borders else { return text.len() <= most };
        let mut from = 0;
        for found in borders
            .finder
            .find_iter(text)
            .filter(|found| borders.ids[found.pattern().as_usize()].is_some())
        {
            if found.start() - from > most {
                return false;
            }
            from = found.end();
        }
        text.len() - from <= most
    }

    /// Encodes a text as [`Encoder::whole`] does, but what stands between two borders from memory
    /// where it was encoded before.
    pub(super) fn pieces(&self, text: &str, cache: &mut Cache) -> Result<Tokens, RenderError> {
        let (Some(borders), Model::HuggingFace(_)) = (&self.borders, &self.model) else {
            return self.whole(text);
        };
        let mut cuts: Vec<Cut> = Vec::new();
        for found in borders.finder.find_iter(text) {
            cuts.extend(
                borders.ids[found.pattern().as_usize()].map(|id| (found.start(), found.end(), id)),
            );
        }
        let mut out = Tokens::default();
        let (mut from, mut before) = (0, None);
        for index in 0..=cuts.len() {
            let next = cuts.get(index).copied();
            let to = next.map_or(text.len(), |(start, ..)| start);
            let around = (before.map(|at: usize| cuts[at]), next);
            if !self.piece(text, (from, to), around, cache, &mut out)? {
                return self.whole(text);
            }
            if let Some((start, end, id)) = next {
                out.push(id, start);
                (from, before) = (end, Some(index));
            }
        }
        Ok(out)
    }

    /// Puts the tokens between two borders behind `out`; false where the borders did not stay what
    /// they are.
    fn piece(
        &self,
        text: &str,
        (from, to): (usize, usize),
        around: (Option<Cut>, Option<Cut>),
        cache: &mut Cache,
        out: &mut Tokens,
    ) -> Result<bool, RenderError> {
        if from == to {
            return Ok(true);
        }
        let id = |cut: Option<Cut>| cut.map(|(.., id)| id);
        let key = Key { text: text[from..to].into(), before: id(around.0), after: id(around.1) };
        if let Some(tokens) = cache.0.get(&key) {
            out.extend(tokens, from);
            return Ok(true);
        }
        let start = around.0.map_or(from, |(start, ..)| start);
        let end = around.1.map_or(to, |(_, end, _)| end);
        let tokens = self.whole(&text[start..end])?;
        let first = key.before.is_none_or(|id| tokens.ids.first() == Some(&id));
        let last = key.after.is_none_or(|id| tokens.ids.last() == Some(&id));
        let inner = usize::from(around.0.is_some())
            ..tokens.ids.len().saturating_sub(usize::from(around.1.is_some()));
        let (Some(ids), Some(starts), true) =
            (tokens.ids.get(inner.clone()), tokens.starts.get(inner), first && last)
        else {
            return Ok(false);
        };
        let lead = u32::try_from(from - start).unwrap_or(u32::MAX);
        let starts = starts.iter().map(|at| at.saturating_sub(lead)).collect();
        let tokens = Tokens { ids: ids.to_vec(), starts };
        out.extend(&tokens, from);
        cache.0.insert(key, tokens);
        Ok(true)
    }

    /// Encodes a text as one.
    pub(super) fn whole(&self, text: &str) -> Result<Tokens, RenderError> {
        match &self.model {
            Model::Bytes => Ok(self.bytes_of(text)),
            Model::HuggingFace(tokenizer) => {
                let refused = |message: String| RenderError::Encode { bytes: text.len(), message };
                let encoding =
                    tokenizer.encode(text, false).map_err(|error| refused(error.to_string()))?;
                let mut last = 0;
                let starts = encoding.get_offsets().iter().map(|(start, _)| {
                    last = last.max(u32::try_from(*start).unwrap_or(u32::MAX));
                    last
                });
                Ok(Tokens { starts: starts.collect(), ids: encoding.get_ids().to_vec() })
            }
        }
    }

    fn bytes_of(&self, text: &str) -> Tokens {
        let mut out = Tokens::default();
        let mut from = 0;
        for found in self.borders.iter().flat_map(|borders| borders.finder.find_iter(text)) {
            text[from..found.start()]
                .bytes()
                .zip(from..)
                .for_each(|(byte, at)| out.push(byte.into(), at));
            out.push(if found.pattern().as_u32() == 0 { 256 } else { 257 }, found.start());
            from = found.end();
        }
        text[from..].bytes().zip(from..).for_each(|(byte, at)| out.push(byte.into(), at));
        out
    }
}

impl Tokens {
    fn push(&mut self, id: u32, start: usize) {
        self.ids.push(id);
        self.starts.push(u32::try_from(start).unwrap_or(u32::MAX));
    }

    fn extend(&mut self, tokens: &Self, from: usize) {
        let from = u32::try_from(from).unwrap_or(u32::MAX);
        self.ids.extend_from_slice(&tokens.ids);
        self.starts.extend(tokens.starts.iter().map(|start| start.saturating_add(from)));
    }
}

/// A finder that picks among overlapping texts as Hugging Face does; `None` where there is nothing
/// to find.
fn borders(texts: Vec<(String, Option<u32>)>) -> Option<Borders> {
    if !texts.iter().any(|(_, id)| id.is_some()) {
        return None;
    }
    let (texts, ids): (Vec<String>, Vec<Option<u32>>) = texts.into_iter().unzip();
    let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(texts).ok()?;
    Some(Borders { finder, ids })
}

#[cfg(test)]
#[path = "../tests/it/tokenizer.rs"]
#[allow(dead_code, reason = "the folder is made for tests from outside")]
pub(super) mod tokenizer;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoder(tokenizer: &Tokenizer) -> Encoder {
        Encoder::hugging_face(tokenizer.to_string(false).unwrap().as_bytes(), &[]).unwrap()
    }

    fn text() -> impl Strategy<Value = String> {
        let words = "<|im_start|>,<|im_end|>,<|im_,<think>,</think>, ,  ,\n,a,hello,System,ü,\u{0}"
            .split(',');
        prop::collection::vec(prop::sample::select(words.collect::<Vec<_>>()), 0..16)
            .prop_map(|words| words.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn pieces_give_the_tokens_of_the_whole(texts in prop::collection::vec(text(), 1..6)) {
            let all = [tokenizer::byte_level(true), tokenizer::first_word(), tokenizer::prepended(), tokenizer::greedy()];
            for encoder in all.iter().map(encoder).chain([Encoder::bytes()]) {
                let mut cache = Cache::default();
                for text in &texts {
                    let (pieces, whole) = (encoder.pieces(text, &mut cache).unwrap(), encoder.whole(text).unwrap());
                    prop_assert_eq!(&pieces.ids, &whole.ids, "{:?}", text);
                    prop_assert!(pieces.starts.is_sorted() && whole.starts.is_sorted());
                }
            }
        }
    }

    #[test]
    fn offsets_point_at_every_token_and_survive_pieces() {
        let encoder = encoder(&tokenizer::byte_level(true));
        let text = "hello  there<|im_end|>\n\n ü<|im_start|>";
        let tokens = encoder.pieces(text, &mut Cache::default()).unwrap();
        assert_eq!(tokens, encoder.whole(text).unwrap());
        assert_eq!(tokens.starts.last(), Some(&u32::try_from(text.rfind('<').unwrap()).unwrap()));
        assert!(tokens.starts.iter().all(|&start| text.is_char_boundary(start as usize)));
    }

    #[test]
    fn borders_that_the_tokenizer_does_not_keep_lose_no_tokens() {
        for border in ["hello", "e", "<|im_", " "] {
            let borders = borders(vec![(border.to_owned(), Some(9999))]);
            let encoder = Encoder { borders, ..encoder(&tokenizer::byte_level(true)) };
            let text = "be hello there<|im_end|>\nhello";
            assert_eq!(
                encoder.pieces(text, &mut Cache::default()).unwrap(),
                encoder.whole(text).unwrap(),
                "{border:?}"
            );
        }
    }

    #[test]
    fn truncation_and_padding_of_the_file_do_not_apply() {
        let mut tokenizer = tokenizer::byte_level(true);
        tokenizer
            .with_truncation(Some(tokenizers::TruncationParams {
                max_length: 2,
                ..Default::default()
            }))
            .unwrap();
        tokenizer.with_padding(Some(tokenizers::PaddingParams {
            strategy: tokenizers::PaddingStrategy::Fixed(64),
            ..Default::default()
        }));
        let ids = encoder(&tokenizer).whole("hello there, be brief").unwrap().ids;
        assert_eq!(
            ids,
            encoder(&tokenizer::byte_level(true)).whole("hello there, be brief").unwrap().ids
        );
        assert!(ids.len() > 2);
    }

    #[test]
    fn bytes_know_two_special_tokens() {
        let tokens = Encoder::bytes().whole("é<|im_start|>x<|im_end|>").unwrap();
        assert_eq!(tokens.ids, [0xc3, 0xa9, 256, u32::from(b'x'), 257]);
        assert_eq!(tokens.starts, [0, 1, 2, 14, 15]);
    }
}
