//! Messages as segments.
use pleach_tree::{Origin, Part, Role, Segment};

use crate::core::block::{self, Content, ContentBlock};
use crate::core::script::{self, Spot};

/// What stands around the summary of a compaction.
pub(super) const COMPACTION: [&str; 2] = [
    "The conversation history before this point was compacted into the following summary:\n\n<summary>\n",
    "\n</summary>",
];
/// What stands around the summary of a branch that was left.
pub(super) const BRANCH: [&str; 2] = [
    "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n",
    "</summary>",
];

/// A summary with the harness's words around it.
pub(super) fn summary(around: [&str; 2], summary: &str, id: &str, spot: &Spot) -> Vec<Segment> {
    let part =
        |origin, text: &str, open| Segment { open, ..script::text(Role::User, origin, text) };
    let parts = [
        part(Origin::Harness, around[0], true),
        part(Origin::ExternalModel, summary, true),
        part(Origin::Harness, around[1], false),
    ];
    parts.into_iter().map(|part| spot.segment(id, part)).collect()
}

/// What stands in a person's place.
pub(super) fn given(content: Content, origin: Origin, id: &str, spot: &Spot) -> Vec<Segment> {
    content
        .texts()
        .into_iter()
        .map(|text| spot.segment(id, script::text(Role::User, origin, text)))
        .collect()
}

/// What a call said.
pub(super) fn said(content: Content) -> Vec<Segment> {
    let blocks = match content {
        Content::Text(text) => return vec![script::said(Part::Content, text)],
        Content::Blocks(blocks) => blocks,
        Content::Absent | Content::Odd => return Vec::new(),
    };
    blocks.into_iter().map(said_block).collect()
}

fn said_block(block: ContentBlock) -> Segment {
    match block.kind.as_str() {
        "thinking" => script::said(Part::Reasoning, block.thinking.unwrap_or_default()),
        "toolCall" => {
            let input = block
                .rest
                .iter()
                .find(|(key, _)| key == "arguments")
                .map_or("{}", |(_, input)| input.get());
            script::call(
                block.id.as_deref().unwrap_or_default(),
                block.name.as_deref().unwrap_or_default(),
                input,
            )
        }
        _ => script::said(Part::Content, block::text_of(block)),
    }
}
