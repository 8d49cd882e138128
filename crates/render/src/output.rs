//! What the policy said, as the template writes it behind the prompt.
use pleach_tree::ContextId;

use super::RenderError;
use super::encode::Tokens;
use super::provenance::Region;
use super::rewrite::Rewriter;
use super::view::{Failure, Rendering, Run, runs};

impl Rewriter<'_, '_> {
    /// The runs of an output and the ids that they index.
    ///
    /// The output ends with the last character that comes from one of its segments: what the
    /// template puts behind is glue of the next context, since the policy may well have ended in
    /// another way.
    pub(super) fn output(
        &mut self,
        context: ContextId,
        members: &[u32],
        output: &[u32],
    ) -> Result<(Vec<Run>, Vec<u32>), RenderError> {
        if output.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let prompt =
            self.viewer.render(members, true).map_err(|failure| self.refused(context, failure))?;
        let full = match self.viewer.render(&[members, output].concat(), false) {
            Ok(full) => Some(full),
            Err(Failure::Refused(_)) => None,
            Err(Failure::Other(error)) => return Err(error),
        };
        let said =
            output.iter().filter(|number| !self.viewer.messages.text(**number).is_empty()).count();
        if let Some(full) = full {
            let mut shown: Vec<u32> = full
                .regions
                .iter()
                .map(|region| region.segment)
                .filter(|n| output.contains(n))
                .collect();
            shown.sort_unstable();
            shown.dedup();
            if !shown.is_empty() || said == 0 {
                self.notes.dropped += said.saturating_sub(shown.len());
                if full.text.starts_with(&prompt.text) {
                    let own = |region: &&Region| {
                        region.start >= prompt.text.len() && output.contains(&region.segment)
                    };
                    let regions: Vec<Region> = full.regions.iter().filter(own).copied().collect();
                    return self.behind(&prompt, &full.text, &full.tokens, &regions, output);
                }
                let (text, regions) = moved(&prompt, &full, output);
                return self.put_behind(&prompt, &text, &regions, output);
            }
        }
        let mut text = prompt.text.clone();
        let mut regions = Vec::new();
        for &segment in output {
            let start = text.len();
            text.push_str(self.viewer.messages.text(segment));
            regions.push(Region { start, end: text.len(), segment, occurrence: 0 });
        }
        self.put_behind(&prompt, &text, &regions, output)
    }

    fn put_behind(
        &mut self,
        prompt: &Rendering,
        text: &str,
        regions: &[Region],
        output: &[u32],
    ) -> Result<(Vec<Run>, Vec<u32>), RenderError> {
        self.notes.bare_outputs += 1;
        let tokens = self.viewer.encode(text)?;
        self.behind(prompt, text, &tokens, regions, output)
    }

    /// The tokens behind a prompt, up to the last that starts in the output.
    fn behind(
        &mut self,
        prompt: &Rendering,
        text: &str,
        tokens: &Tokens,
        regions: &[Region],
        output: &[u32],
    ) -> Result<(Vec<Run>, Vec<u32>), RenderError> {
        let (len, from) = (prompt.tokens.ids.len(), prompt.text.len());
        let extends = tokens.ids.get(..len).is_some_and(|head| head == prompt.tokens.ids);
        let (mut tokens, first) = if extends {
            (tokens.clone(), len)
        } else {
            self.notes.retokenised += 1;
            let mut tail = self.viewer.encode(&text[from..])?;
            let from = u32::try_from(from).unwrap_or(u32::MAX);
            tail.starts.iter_mut().for_each(|start| *start = start.saturating_add(from));
            (tail, 0)
        };
        let own = regions.iter().filter(|region| output.contains(&region.segment));
        let end = own.map(|region| region.end).max().unwrap_or(from);
        let last = tokens.starts[first..].partition_point(|&start| (start as usize) < end) + first;
        tokens.ids.truncate(last);
        tokens.starts.truncate(last);
        Ok((runs(&tokens, regions, first), tokens.ids))
    }
}

/// The output as `full` has it, put behind a prompt that `full` does not begin with, since the
/// template writes the turns before differently once more follows.
fn moved(prompt: &Rendering, full: &Rendering, output: &[u32]) -> (String, Vec<Region>) {
    let own = |region: &Region| output.contains(&region.segment);
    let first = full.regions.iter().position(own).unwrap_or(full.regions.len());
    let before = first.checked_sub(1).map_or(0, |last| full.regions[last].end);
    let start = full.regions.get(first).map_or(full.text.len(), |region| region.start);
    let asked = &prompt.text[prompt.regions.last().map_or(0, |region| region.end)..];
    let opening =
        full.text.get(before..start).and_then(|glue| glue.strip_prefix(asked)).unwrap_or("");
    let text = [&prompt.text, opening, &full.text[start..]].concat();
    let shift = prompt.text.len() + opening.len();
    let moved = |region: &Region| Region {
        start: region.start - start + shift,
        end: region.end - start + shift,
        ..*region
    };
    (text, full.regions[first..].iter().filter(|region| own(region)).map(moved).collect())
}
