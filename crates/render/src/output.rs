//! What the policy sampled, as the template writes it behind the prompt.
use std::ops::Range;

use pleach_tree::{ContextId, Origin};

use super::RenderError;
use super::encode::Tokens;
use super::folder::Loss;
use super::provenance::Region;
use super::rewrite::Rewriter;
use super::survival::{Piece, Written};
use super::view::{Failure, Rendering, Run, runs};

/// What a call sampled, in tokens.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) runs: Vec<Run>,
    /// The ids that the runs index.
    pub(super) ids: Vec<u32>,
    /// Which tokens carry loss where the template names them; empty where it does not.
    pub(super) trained: Vec<Range<usize>>,
}

/// An answer behind its prompt.
struct Spoken {
    /// The prompt and all that is behind it.
    text: String,
    tokens: Option<Tokens>,
    /// Which characters of the answer come from which segment.
    regions: Vec<Region>,
    /// Which characters the template names as trained.
    trained: Vec<Range<usize>>,
    /// Where the last of what was said ends.
    said: usize,
}

impl Rewriter<'_, '_> {
    /// The tokens of an output: what the template writes for the answer directly behind the
    /// generation prompt, up to the token that ends the turn; of [`Loss::Text`] up to the last
    /// character of the answer. Where the template does not show all that was sampled, the recorded
    /// text stands there instead.
    pub(super) fn output(
        &mut self,
        context: ContextId,
        members: &[u32],
        output: &[u32],
    ) -> Result<Answer, RenderError> {
        if output.is_empty() {
            return Ok(Answer::default());
        }
        let prompt =
            self.viewer.render(members, true).map_err(|failure| self.refused(context, failure))?;
        let full = match self.viewer.render(&[members, output].concat(), false) {
            Ok(full) => Some(full),
            Err(Failure::Refused(_)) => None,
            Err(Failure::Other(error)) => return Err(error),
        };
        let spoken = match full {
            Some(full) => {
                let continues = full.text.starts_with(&prompt.text);
                let mut spoken = match continues {
                    true => continued(&prompt, &full, output),
                    false => moved(&prompt, &full, output),
                };
                match self.shown(&prompt, &spoken.text, output)? {
                    Ok(said) => {
                        self.notes.bare_outputs += usize::from(!continues);
                        spoken.said = spoken.said.max(said);
                        spoken
                    }
                    Err(segment) => {
                        self.notes.lost(self.viewer.messages.segment(segment));
                        self.recorded(&prompt, Some(&spoken), output)?
                    }
                }
            }
            None => {
                self.notes.bare_outputs += 1;
                self.recorded(&prompt, None, output)?
            }
        };
        self.behind(&prompt, spoken, output)
    }

    /// Where in a rendering the last text of an output ends, or the first text that the policy
    /// sampled and that the rendering does not show.
    fn shown(
        &mut self,
        prompt: &Rendering,
        text: &str,
        output: &[u32],
    ) -> Result<Result<usize, u32>, RenderError> {
        // The prompt may end with what the policy goes on from, such as an opening tag.
        let asked = prompt.regions.last().map_or(0, |region| region.end);
        let ending = self.viewer.turn_ending()?;
        let answer = text[prompt.text.len()..].trim_end();
        let answer = answer.strip_suffix(ending.trim_end()).unwrap_or(answer);
        let mut written = Written::new(&prompt.text[asked..], answer);
        let messages = &self.viewer.messages;
        let mut all: Vec<(usize, Piece)> = Vec::new();
        for (place, &number) in output.iter().enumerate() {
            let pieces = match messages.call(number) {
                Some((name, input)) => Piece::call(name, input),
                None => vec![Piece::text(messages.text(number))],
            };
            all.extend(pieces.into_iter().map(|piece| (place, piece)));
        }
        all.sort_by_key(|(_, piece)| std::cmp::Reverse(piece.len()));
        let shows = |number: u32| {
            messages.call(number).is_none_or(|(_, input)| written.holds_values(input))
        };
        let mut shown: Vec<bool> = output.iter().map(|&number| shows(number)).collect();
        for (place, piece) in &all {
            shown[*place] &= written.take(piece);
        }
        let sampled = |number: u32| messages.segment(number).origin == Origin::Policy;
        let lost = output.iter().zip(shown).find(|&(&number, shown)| !shown && sampled(number));
        Ok(match lost {
            Some((&number, _)) => Err(number),
            None => Ok(prompt.text.len() + written.end(answer)),
        })
    }

    /// The recorded texts of an output behind the prompt, the calls as the template writes them
    /// where it does, and what ends its turns.
    fn recorded(
        &mut self,
        prompt: &Rendering,
        spoken: Option<&Spoken>,
        output: &[u32],
    ) -> Result<Spoken, RenderError> {
        let messages = &self.viewer.messages;
        let (said, calls): (Vec<u32>, Vec<u32>) =
            output.iter().partition(|&&number| !messages.is_call(number));
        let mut text = prompt.text.clone();
        let mut regions = Vec::new();
        let mut say = |number: u32, words: &str, text: &mut String| {
            let start = text.len();
            text.push_str(words);
            regions.push(Region { start, end: text.len(), segment: number, occurrence: 0 });
        };
        for &number in &said {
            let words = messages.text(number);
            let known = if text.len() == prompt.text.len() { overlap(&text, words) } else { 0 };
            say(number, &words[known..], &mut text);
        }
        let written = spoken.and_then(|spoken| written_calls(spoken, prompt.text.len(), &calls));
        match written {
            Some((from, written)) => {
                let shift = text.len();
                text.push_str(&written.text[from..]);
                let moved = |region: &&Region| region.start >= from;
                regions.extend(written.regions.iter().filter(moved).map(|region| Region {
                    start: region.start - from + shift,
                    end: region.end - from + shift,
                    ..*region
                }));
            }
            None => {
                for &number in &calls {
                    say(number, messages.text(number), &mut text);
                }
                text.push_str(&self.viewer.turn_ending()?);
            }
        }
        let said = regions.last().map_or(prompt.text.len(), |region| region.end);
        Ok(Spoken { text, tokens: None, regions, trained: Vec::new(), said })
    }

    /// The tokens behind a prompt, as many as were sampled.
    fn behind(
        &mut self,
        prompt: &Rendering,
        spoken: Spoken,
        output: &[u32],
    ) -> Result<Answer, RenderError> {
        let tokens = match spoken.tokens {
            Some(tokens) => tokens,
            None => self.viewer.encode(&spoken.text)?,
        };
        let (len, from) = (prompt.tokens.ids.len(), prompt.text.len());
        let extends = tokens.ids.get(..len).is_some_and(|head| head == prompt.tokens.ids);
        let (mut tokens, first) = if extends {
            (tokens, len)
        } else {
            self.notes.retokenised += 1;
            let mut tail = self.viewer.encode(&spoken.text[from..])?;
            let from = u32::try_from(from).unwrap_or(u32::MAX);
            tail.starts.iter_mut().for_each(|start| *start = start.saturating_add(from));
            (tail, 0)
        };
        let at = |tokens: &Tokens, byte: usize| {
            tokens.starts[first..].partition_point(|&start| (start as usize) < byte) + first
        };
        let answered = at(&tokens, spoken.said);
        let mut trained: Vec<Range<usize>> = spoken
            .trained
            .iter()
            .filter(|span| span.end > from)
            .map(|span| at(&tokens, span.start)..at(&tokens, span.end))
            .filter(|span| !span.is_empty())
            .collect();
        let last = match (self.loss, trained.last()) {
            (Loss::Text, _) => answered,
            (Loss::Turn, Some(span)) => answered.max(span.end),
            (Loss::Turn, None) => match self.viewer.turn_end(&tokens.ids[answered..])? {
                Some(ending) => answered + ending,
                None => at(&tokens, from + spoken.text[from..].trim_end().len()).max(answered),
            },
        };
        tokens.ids.truncate(last);
        tokens.starts.truncate(last);
        let mut runs = runs(&tokens, &spoken.regions, first);
        match self.loss {
            Loss::Turn => runs = sampled(runs, &trained, self.losses(output)),
            Loss::Text => trained.clear(),
        }
        Ok(Answer { runs, ids: tokens.ids, trained })
    }

    /// The texts of an output that the policy sampled, whose losses what stands around them has.
    fn losses(&self, output: &[u32]) -> Vec<u32> {
        let sampled = |number: &u32| self.viewer.messages.segment(*number).origin == Origin::Policy;
        output.iter().copied().filter(sampled).collect()
    }
}

/// Gives the template's own of an output the loss of the text before it, or of the next one; where
/// the template names what is trained, only inside of that.
fn sampled(runs: Vec<Run>, trained: &[Range<usize>], texts: Vec<u32>) -> Vec<Run> {
    let Some(&first) = texts.first() else { return runs };
    let mut like = first;
    let mut out = Vec::with_capacity(runs.len());
    for run in runs {
        if let Some((text, _)) = run.part {
            like = if texts.contains(&text) { text } else { like };
            out.push(run);
            continue;
        }
        if trained.is_empty() {
            out.push(Run { like: Some(like), ..run });
            continue;
        }
        let mut at = run.tokens.start;
        for span in trained {
            let (start, end) = (span.start.max(at), span.end.min(run.tokens.end));
            if start < end {
                out.push(Run { tokens: at..start, ..run.clone() });
                out.push(Run { part: None, like: Some(like), tokens: start..end });
                at = end;
            }
        }
        out.push(Run { tokens: at..run.tokens.end, ..run });
    }
    out
}

/// The answer of a rendering that begins with the prompt.
fn continued(prompt: &Rendering, full: &Rendering, output: &[u32]) -> Spoken {
    let own =
        |region: &&Region| region.start >= prompt.text.len() && output.contains(&region.segment);
    Spoken {
        text: full.text.clone(),
        tokens: Some(full.tokens.clone()),
        regions: full.regions.iter().filter(own).copied().collect(),
        trained: full.trained.clone(),
        said: full.regions.iter().filter(own).map(|r| r.end).fold(prompt.text.len(), usize::max),
    }
}

/// The answer as `full` has it, put behind a prompt that `full` does not begin with, since the
/// template writes the turns before differently once more follows.
fn moved(prompt: &Rendering, full: &Rendering, output: &[u32]) -> Spoken {
    let own = |region: &Region| output.contains(&region.segment);
    let first = full.regions.iter().position(own).unwrap_or(full.regions.len());
    let before = first.checked_sub(1).map_or(0, |last| full.regions[last].end);
    let start = full.regions.get(first).map_or(full.text.len(), |region| region.start);
    let asked = &prompt.text[prompt.regions.last().map_or(0, |region| region.end)..];
    let glue = full.text.get(before..start).unwrap_or("");
    let opening = &glue[common_tags(asked, glue)..];
    let text = [&prompt.text, opening, &full.text[start..]].concat();
    let shift = prompt.text.len() + opening.len();
    let moved = |region: &Region| Region {
        start: region.start - start + shift,
        end: region.end - start + shift,
        ..*region
    };
    let regions: Vec<Region> =
        full.regions[first..].iter().filter(|region| own(region)).map(moved).collect();
    let said = regions.iter().map(|region| region.end).fold(prompt.text.len(), usize::max);
    let from = start - opening.len();
    let trained = full.trained.iter().filter(|span| span.end > from);
    let trained = trained
        .map(|span| {
            span.start.max(from) + prompt.text.len() - from..span.end + prompt.text.len() - from
        })
        .collect();
    Spoken { text, tokens: None, regions, trained, said }
}

/// Where the calls of an answer begin with what the template writes around them, if it shows all of
/// them behind everything else.
fn written_calls<'s>(
    spoken: &'s Spoken,
    from: usize,
    calls: &[u32],
) -> Option<(usize, &'s Spoken)> {
    let is_call = |region: &Region| calls.contains(&region.segment);
    let shown = calls.iter().all(|call| spoken.regions.iter().any(|r| r.segment == *call));
    let first = spoken.regions.iter().position(is_call)?;
    let behind = spoken.regions[first..].iter().all(is_call);
    let start = first.checked_sub(1).map_or(from, |before| spoken.regions[before].end);
    (shown && behind).then_some((start, spoken))
}

/// How many bytes two texts begin with alike, up to the end of a tag or a line: where one opens a
/// thought and the other a call, what opens the call is no part of it.
fn common_tags(one: &str, other: &str) -> usize {
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    if same == one.len() {
        return same;
    }
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b">]".contains(byte);
    one.as_bytes()[..same].iter().rposition(ends).map_or(0, |last| last + 1)
}

/// How many bytes of `words` the prompt ends with already, such as an opening tag of thoughts.
fn overlap(prompt: &str, words: &str) -> usize {
    let lead = words.len() - words.trim_start().len();
    if !words[lead..].starts_with(['<', '[']) {
        return 0;
    }
    let ends = words.char_indices().map(|(at, _)| at).chain([words.len()]).take(256);
    ends.filter(|&end| end > lead + 1 && prompt.ends_with(&words[..end])).max().unwrap_or(0)
}
