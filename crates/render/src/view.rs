//! Message lists as tokens that know which segment they come from.
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use minijinja::Value;

use super::encode::{Cache, Encoder, Tokens};
use super::mark::{self, Marking};
use super::message::Messages;
use super::provenance::{self, Region, Stripped};
use super::template::Applied;
use super::{ChatTemplate, RenderError, splice};

/// How many renderings are kept at hand: the next context often holds what the generation before
/// was rendered with.
const KEPT: usize = 8;

/// A rendered message list.
#[derive(Debug)]
pub(super) struct Rendering {
    pub(super) text: String,
    pub(super) tokens: Tokens,
    /// Which characters come from which segment, in order.
    pub(super) regions: Vec<Region>,
    /// Which characters the template itself names as trained.
    pub(super) trained: Vec<Range<usize>>,
}

/// A run of a rendering's tokens that one segment, or the template, wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    /// Number of the segment and how often it stood before; `None` for the template's own.
    pub(super) part: Option<(u32, u32)>,
    /// Of the template's own, what the policy sampled: the text whose loss it has.
    pub(super) like: Option<u32>,
    pub(super) tokens: Range<usize>,
}

/// Why a message list has no rendering.
#[derive(Debug)]
pub(super) enum Failure {
    /// The template says so.
    Refused(String),
    Other(RenderError),
}

impl From<RenderError> for Failure {
    fn from(error: RenderError) -> Self {
        Self::Other(error)
    }
}

/// Renders message lists with one template and one tokenizer.
#[derive(Debug)]
pub(super) struct Viewer<'r, 't> {
    pub(super) messages: Messages<'t>,
    template: &'r ChatTemplate,
    encoder: &'r Encoder,
    in_pieces: bool,
    splices: bool,
    spliced: bool,
    cache: Cache,
    kept: VecDeque<(Vec<u32>, bool, Rc<Rendering>)>,
    /// What the template ends a turn with, once it was asked for.
    ending: Option<Rc<str>>,
    /// Renderings whose characters were assigned by search, marks having changed what the template
    /// does.
    pub(super) searched: usize,
}

impl<'r, 't> Viewer<'r, 't> {
    /// With `splices`, the encoding of a long text may begin where that of another, with the same
    /// beginning, is sure to agree.
    pub(super) fn new(
        messages: Messages<'t>,
        template: &'r ChatTemplate,
        encoder: &'r Encoder,
        splices: bool,
    ) -> Self {
        let (in_pieces, cache, kept) = (encoder.in_pieces(), Cache::default(), VecDeque::new());
        Self {
            messages,
            template,
            encoder,
            in_pieces,
            splices,
            spliced: false,
            cache,
            kept,
            ending: None,
            searched: 0,
        }
    }

    /// Compares encoding in pieces with encoding as one on a message list, and leaves it where they
    /// differ.
    ///
    /// Returns false where they do.
    pub(super) fn verify(&mut self, members: &[u32]) -> Result<bool, Failure> {
        if !self.in_pieces {
            return Ok(true);
        }
        let text = self.text(members, true)?.text;
        self.in_pieces =
            self.encoder.pieces(&text, &mut self.cache)?.ids == self.encoder.whole(&text)?.ids;
        Ok(self.in_pieces)
    }

    /// The rendering of `members`, as the prompt of a call or as a conversation.
    pub(super) fn render(
        &mut self,
        members: &[u32],
        prompt: bool,
    ) -> Result<Rc<Rendering>, Failure> {
        let same = |kept: &&(Vec<u32>, bool, Rc<Rendering>)| kept.1 == prompt && kept.0 == members;
        if let Some((.., rendering)) = self.kept.iter().find(same) {
            return Ok(Rc::clone(rendering));
        }
        let open = if prompt { self.messages.open_end(members) } else { None };
        let asks = prompt && open.is_none();
        let Applied { mut text, trained } = self.text(members, asks)?;
        let mut regions = self.regions(&text, members, asks);
        if let Some(last) = open {
            // The answer goes on inside of the last message, whose turn is not over.
            let end = goes_on(&text, (last, self.messages.text(last)), &regions)
                .ok_or_else(|| Failure::Refused("the last message, which the answer goes on in, does not stand in the rendering".into()))?;
            text.truncate(end);
            regions.retain(|region| region.start < end);
            regions.iter_mut().for_each(|region| region.end = region.end.min(end));
        }
        let tokens = self.encode(&text)?;
        let rendering = Rc::new(Rendering { text, tokens, regions, trained });
        self.kept.truncate(KEPT - 1);
        self.kept.push_front((members.to_vec(), prompt, Rc::clone(&rendering)));
        Ok(rendering)
    }

    /// The ids of the rendering of `members` alone, which nothing is kept of.
    pub(super) fn ids(&mut self, members: &[u32], prompt: bool) -> Result<Vec<u32>, Failure> {
        let open = if prompt { self.messages.open_end(members) } else { None };
        if open.is_some() {
            return Ok(self.render(members, prompt)?.tokens.ids.clone());
        }
        let text = self.text(members, prompt)?.text;
        Ok(self.encode(&text)?.ids)
    }

    /// Encodes a text, special tokens in it recognised, none added.
    pub(super) fn encode(&mut self, text: &str) -> Result<Tokens, RenderError> {
        if self.splices && !self.encoder.is_cut_up(text, splice::LONG) {
            let known = self.kept.iter().map(|(.., rendering)| &**rendering);
            if let Some(tokens) = splice::encode(text, known, self.encoder)? {
                self.spliced = true;
                return Ok(tokens);
            }
        }
        if self.in_pieces {
            self.encoder.pieces(text, &mut self.cache)
        } else {
            self.encoder.whole(text)
        }
    }

    /// Forgets what was rendered and encoded, which is kept to be used again soon and not for long.
    pub(super) fn forget(&mut self) {
        self.messages.forget();
        self.kept.clear();
        self.cache = Cache::default();
    }

    /// How many of the tokens behind an answer end its turn: up to the first that is known to end
    /// one, else up to what the template ends a short answer with, else up to the first special
    /// ones; `None` where there are none of these.
    pub(super) fn turn_end(&mut self, behind: &[u32]) -> Result<Option<usize>, RenderError> {
        if let Some(end) = self.encoder.known_end(behind) {
            return Ok(Some(end));
        }
        let ending = self.turn_ending()?;
        let ending = self.encoder.whole(&ending)?.ids;
        let last = match ending.len() {
            0 => None,
            len => behind.windows(len).rposition(|ids| ids == ending).map(|at| at + len),
        };
        Ok(last.or_else(|| self.encoder.special_end(behind)))
    }

    /// What the template ends the turn of a short answer with; empty where it ends it with nothing,
    /// or refuses such a conversation.
    pub(super) fn turn_ending(&mut self) -> Result<Rc<str>, RenderError> {
        if let Some(ending) = &self.ending {
            return Ok(Rc::clone(ending));
        }
        const ANSWER: &str = "Yes, indeed.";
        let of = |role, content| Value::from_pairs([("role", role), ("content", content)]);
        let messages = vec![of("user", "Is it so?"), of("assistant", ANSWER)];
        let text = self.template.apply(messages, None, false).map(|applied| applied.text);
        let text = text.unwrap_or_default();
        let behind = text.rsplit_once(ANSWER).map_or("", |(_, behind)| behind);
        let tokens = self.encoder.whole(behind)?;
        let end = self.encoder.known_end(&tokens.ids);
        let byte = match end.or_else(|| self.encoder.special_end(&tokens.ids)) {
            Some(end) => tokens.starts.get(end).map_or(behind.len(), |&start| start as usize),
            None => behind.trim_end().len(),
        };
        let ending: Rc<str> = behind[..byte].into();
        self.ending = Some(Rc::clone(&ending));
        Ok(ending)
    }

    /// Whether the ids of `members` are those of its text as one, which has to be asked where texts
    /// were spliced.
    pub(super) fn confirm(&mut self, members: &[u32]) -> Result<bool, Failure> {
        if !self.spliced {
            return Ok(true);
        }
        let rendering = self.render(members, true)?;
        Ok(rendering.tokens.ids == self.encoder.whole(&rendering.text)?.ids)
    }

    fn text(&mut self, members: &[u32], prompt: bool) -> Result<Applied, Failure> {
        let messages = self.messages.values(members, Marking::Plain);
        let tools = self.messages.tools(members);
        self.template.apply(messages, tools, prompt).map_err(Failure::Refused)
    }

    fn marked(&mut self, members: &[u32], prompt: bool, marking: Marking) -> Option<Stripped> {
        let messages = self.messages.values(members, marking);
        let tools = self.messages.tools(members);
        self.template.apply(messages, tools, prompt).ok().map(|applied| mark::strip(&applied.text))
    }

    fn regions(&mut self, text: &str, members: &[u32], prompt: bool) -> Vec<Region> {
        let edges = self.marked(members, prompt, Marking::Edges);
        if let Some((stripped, marks)) = &edges
            && stripped == text
        {
            return provenance::between(text, marks, &self.messages, Marking::Edges);
        }
        if let Some((stripped, marks)) = self.marked(members, prompt, Marking::Inside)
            && stripped == text
        {
            let mut regions = provenance::between(text, &marks, &self.messages, Marking::Inside);
            if let Some(edges) = &edges {
                provenance::widen(text, &mut regions, edges, &self.messages);
            }
            return regions;
        }
        self.searched += 1;
        let careful =
            self.marked(members, prompt, Marking::Careful).filter(|(stripped, _)| stripped == text);
        let mut regions = match careful {
            Some((_, marks)) => provenance::between(text, &marks, &self.messages, Marking::Careful),
            None => Vec::new(),
        };
        provenance::search(text, &mut regions, members, &self.messages);
        regions
    }
}

/// Where the last text of a rendering ends, as transformers finds it for
/// `continue_final_message`: with the white space behind it where the template left that.
///
/// What the template writes behind may hold the same words, so where the text stands goes first.
fn goes_on(text: &str, (number, last): (u32, &str), regions: &[Region]) -> Option<usize> {
    let region = regions.iter().rfind(|region| region.segment == number);
    let shown = |region: &&Region| text[region.start..region.end].trim().ends_with(last.trim());
    if let Some(region) = region.filter(shown) {
        return Some(region.end);
    }
    let start = text.rfind(last.trim())?;
    let whole = last.trim_start();
    let kept = text[start..].starts_with(whole);
    Some(start + if kept { whole.len() } else { last.trim().len() })
}

/// The runs of `tokens`, shared out by where each token starts: one for every region and one
/// before, between and behind them.
pub(super) fn runs(tokens: &Tokens, regions: &[Region], from: usize) -> Vec<Run> {
    let first = |byte: usize| {
        tokens.starts[from..].partition_point(|&start| (start as usize) < byte) + from
    };
    let mut runs = Vec::with_capacity(2 * regions.len() + 1);
    let mut at = from;
    for region in regions {
        let (start, end) = (first(region.start).max(at), first(region.end).max(at));
        runs.push(Run { part: None, like: None, tokens: at..start });
        let part = Some((region.segment, region.occurrence));
        runs.push(Run { part, like: None, tokens: start..end });
        at = end;
    }
    runs.push(Run { part: None, like: None, tokens: at..tokens.ids.len() });
    runs
}
