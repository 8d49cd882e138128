//! A harness of one's own writes eviction records while it runs: a task, two tool calls, and the
//! first result cleared before the third call.
//!
//! ```sh
//! cargo run -p pleach --example record_live
//! ```
use std::io::Write;

use anyhow::Result;
use pleach::tree::{
    By, Evict, Evicted, Fidelity, Header, Origin, Outcome, Place, RecordBuilder, Replacement,
    ReplacementKind, Role, Status, Trigger,
};

fn main() -> Result<()> {
    let mut log = RecordBuilder::new(Header::new("my-harness", Fidelity::Token))?;
    let task = log.tokens(Role::User, Origin::Human, [5, 6, 7])?;
    let mut context = log.append(None, [task])?;
    let mut results = Vec::new();
    for step in 0..2 {
        // What the policy sampled, and what the tool answered.
        let call = log.tokens(Role::Assistant, Origin::Policy, [20 + step])?;
        log.sample(context, [call])?;
        let result = log.tokens(Role::Tool, Origin::Environment, [30 + step, 31 + step])?;
        context = log.append(context, [call, result])?;
        results.push(result);
    }

    let cleared = log.tokens(Role::Tool, Origin::Harness, [1])?;
    let placeholder = Replacement::new(ReplacementKind::Placeholder, vec![cleared], Place::InPlace);
    context = log.evict(
        Evict::new(context, [Evicted::whole(results[0])])
            .with_replacement(placeholder)
            .with_author(By::rule("clear-tool-results"))
            .with_trigger(Trigger::Auto),
    )?;
    let answer = log.tokens(Role::Assistant, Origin::Policy, [40, 41])?;
    log.sample(context, [answer])?;
    log.outcome(Outcome::new("r0", "task-1", 1.0, Status::Finished))?;

    // A record at fault is refused, and says why; nothing is written of it.
    if let Err(error) = log.evict(Evict::new(context, [Evicted::whole(results[0])])) {
        eprintln!("refused: {error}");
    }
    let mut file = std::io::stdout().lock();
    log.write_new(&mut file)?;
    file.flush()?;
    let (tree, _) = log.finish()?;
    anyhow::ensure!(tree.generation_count() == 3);
    Ok(())
}
