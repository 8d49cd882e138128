//! How long rendering takes for sessions of more and more calls, in seconds and bytes of text.
//!
//! ```sh
//! cargo run --release -p pleach-render --example long_session -- [TEMPLATE.jinja] [CALLS ...]
//! ```
use std::time::Instant;

use pleach_render::Renderer;
use pleach_tree::{
    BranchTree, Fidelity, Header, Origin, ReadOptions, RecordBuilder, Role, Segment, SegmentId,
    TreeError,
};

/// An agent that calls a tool `calls` times, each result of 6,000 characters.
fn session(calls: usize) -> Result<BranchTree, TreeError> {
    let mut log = RecordBuilder::new(Header::new("example", Fidelity::Message))?;
    let system = log.text(Role::System, Origin::Harness, "Keep the tower.")?;
    let task = log.text(Role::User, Origin::Human, "Ring every bell.")?;
    let mut context = log.append(None, [system, task])?;
    for call in 0..calls {
        let text =
            format!("{{\"id\":\"c{call}\",\"name\":\"ring\",\"input\":{{\"bell\":{call}}}}}");
        let said = Segment::new(SegmentId(0), Role::Assistant, Origin::Policy).with_text(text);
        let said = log.segment(Segment { part: Some(pleach_tree::Part::ToolCall), ..said })?;
        log.sample(context, [said])?;
        let words = format!("bell {call} rang, as loud as ever; ").repeat(6_000 / 32);
        let result = Segment::new(SegmentId(0), Role::Tool, Origin::Environment).with_text(words);
        let result = log.segment(Segment { result_of: Some(format!("c{call}")), ..result })?;
        context = log.append(context, [said, result])?;
    }
    log.sample(context, [])?;
    let (tree, _) = BranchTree::from_records(log.into_records(), "session", ReadOptions::STRICT)?;
    Ok(tree)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let template = arguments.first().filter(|name| name.ends_with(".jinja")).cloned();
    let renderer = match &template {
        Some(file) => Renderer::bytes().with_template(file)?,
        None => Renderer::bytes(),
    };
    arguments.drain(..usize::from(template.is_some()));
    let calls: Vec<usize> =
        arguments.iter().map(|count| count.parse()).collect::<Result<_, _>>()?;
    let calls = if calls.is_empty() { vec![500, 1_000, 2_000, 4_000] } else { calls };
    for calls in calls {
        let tree = session(calls)?;
        let start = Instant::now();
        let rendered = renderer.render(&tree)?.ok_or("there is text")?;
        let seconds = start.elapsed().as_secs_f64();
        let tokens: usize = rendered
            .records
            .iter()
            .map(|record| match record {
                pleach_tree::Record::Segment(segment) => segment.extent(),
                _ => 0,
            })
            .sum();
        println!("{calls} calls, {tokens} tokens: {seconds:.3} s");
        for note in rendered.notes {
            println!("  {note}");
        }
    }
    Ok(())
}
