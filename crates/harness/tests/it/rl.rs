//! What token logs of trainers become: contexts are the recorded prompts, id for id, and the loss
//! is where the masks put it.

use std::io::Write;

use crate::told::{convert_text, found, rejected, told, told_of, trained_twice, tree};
use pleach_harness::{Harness, Input, ReadOptions, convert_from, detect};
use pleach_tree::{Fidelity, Record};
use serde_json::{Value, json};

fn step(prompt: &[u32], said: &[u32]) -> Value {
    let logprobs: Vec<f64> = said.iter().map(|_| -0.5).collect();
    let mask: Vec<u8> = said.iter().map(|_| 1).collect();
    let tokens = json!({"prompt_ids": prompt, "prompt_mask": vec![0; prompt.len()], "completion_ids": said, "completion_mask": mask, "completion_logprobs": logprobs});
    json!({"tokens": tokens, "trajectory_id": "main"})
}

fn rollout(steps: &[Value]) -> String {
    json!({"example_id": 3, "reward": 1.0, "trajectory": steps}).to_string() + "\n"
}

fn range(from: u32, to: u32) -> Vec<u32> {
    (from..to).collect()
}

fn joined(parts: &[&[u32]]) -> Vec<u32> {
    parts.concat()
}

#[test]
fn a_rollout_of_steps_is_a_thread_whose_summary_is_inferred() {
    let (head, said, result, summary) = (range(0, 8), range(20, 24), range(30, 44), range(50, 60));
    let grown = joined(&[&head, &said, &result]);
    let asked = joined(&[&grown, &[60, 61], &[70, 71]]);
    let next = joined(&[&head, &[80], &summary, &[81]]);
    let log = rollout(&[
        step(&head, &said),
        step(&grown, &[60, 61]),
        step(&asked, &summary),
        step(&next, &[90]),
    ]);
    insta::assert_snapshot!(told(&log, Harness::Rl));
}

#[test]
fn a_summariser_without_the_tools_of_the_others_forks_and_the_thread_keeps_its_tools() {
    let (tools, system, task) = (range(500, 530), range(0, 20), range(100, 116));
    let (first, result, ask) = (range(200, 214), range(220, 240), range(300, 315));
    let (summary, framing) = (range(400, 420), [600, 601]);
    let head = joined(&[&tools, &system, &task]);
    let second = joined(&[&head, &first, &result]);
    let asked = joined(&[&system, &task, &first, &result, &range(240, 244), &ask]);
    let next = joined(&[&tools, &system, &framing, &summary]);
    let steps = [
        step(&head, &first),
        step(&second, &range(240, 244)),
        step(&asked, &summary),
        step(&next, &range(700, 704)),
        step(&joined(&[&next, &range(700, 704), &range(710, 730)]), &[731]),
    ];
    let bare: String = steps.iter().map(|step| format!("{}\n", step["tokens"])).collect();
    let conversion = convert_text(&rollout(&steps), None, ReadOptions::STRICT).unwrap();
    let tree = tree(&conversion);
    let threads: Vec<_> = tree.generations().map(|call| call.thread.as_str()).collect();
    assert_eq!(threads, ["main", "main", "summarizer-1", "main", "main"]);
    let named = told_of(&conversion);
    assert!(named.starts_with(&told(&bare, Harness::Rl)), "without names of threads, too");
    insta::assert_snapshot!(named);
}

#[test]
fn one_boundary_that_was_tokenised_anew_is_no_eviction() {
    let (head, said) = (range(0, 20), range(40, 60));
    let mut next = joined(&[&head, &said, &range(70, 90)]);
    // The last id of what was said and the first of what follows it become one other id.
    next.splice(39..41, [99]);
    let log = rollout(&[step(&head, &said), step(&next, &[1, 2])]);
    let conversion = convert_text(&log, None, ReadOptions::STRICT).unwrap();
    insta::assert_snapshot!(told_of(&conversion));
    let by: Vec<_> = conversion
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Evict(evict) => evict.by.clone().unwrap().name,
            _ => None,
        })
        .collect();
    assert_eq!(by, ["chat_template"], "which no count of evictions counts");
}

#[test]
fn a_stretch_in_the_middle_leaves_by_ranges_of_its_segments() {
    let head = range(0, 60);
    let cut = joined(&[&head[..20], &[90, 91], &head[40..], &[1, 2], &range(70, 90)]);
    insta::assert_snapshot!(told(&rollout(&[step(&head, &[1, 2]), step(&cut, &[3])]), Harness::Rl));
}

#[test]
fn a_sample_of_several_turns_has_a_generation_for_each_run_under_the_mask() {
    let sample = |index: u32, reward: f64, status: &str| {
        json!({"group_index": 7, "index": index, "prompt": "q", "tokens": [1, 2, 3, 10, 11, 20, 21, 12], "response_length": 5,
            "loss_mask": [1, 1, 0, 0, 1], "rollout_log_probs": [-0.1, -0.2, 0.0, 0.0, -0.3], "reward": reward, "status": status})
    };
    let log = json!([[sample(0, 1.0, "completed"), sample(1, 0.0, "truncated")]]).to_string();
    insta::assert_snapshot!(told(&log, Harness::Rl));
}

#[test]
fn a_sample_that_replays_its_parent_trains_only_what_is_new() {
    let sample = |tokens: &[u32], length: usize, mask: &[u8]| {
        json!({"index": 4, "group_index": 0, "tokens": tokens, "response_length": length, "loss_mask": mask, "reward": 0.5})
            .to_string()
            + "\n"
    };
    let parent = sample(&[1, 2, 3, 10, 11], 2, &[1, 1]);
    let child = sample(&[1, 2, 3, 10, 11, 20, 12], 4, &[1, 1, 0, 1]);
    let conversion = convert_text(&(parent + &child), None, ReadOptions::STRICT).unwrap();
    insta::assert_snapshot!(told_of(&conversion));
    assert!(trained_twice(&tree(&conversion)).is_empty());
}

#[test]
fn masks_and_weights_become_loss_runs() {
    let steps = json!({"prompt_ids": [1, 2], "response_ids": [3, 4, 5], "response_mask": [1, 0, 1], "response_logprobs": [-1.0, 0.0, -2.0], "uid": "u", "reward_score": 0.25}).to_string();
    let mut partly = step(&[1, 2], &[3, 4]);
    partly["tokens"]["completion_mask"] = json!([1, 0]);
    let removed =
        json!({"tokens": [1, 2, 3], "response_length": 1, "remove_sample": true, "index": 9})
            .to_string();
    insta::assert_snapshot!(told(
        &format!("{steps}\n{}{removed}\n", rollout(&[partly])),
        Harness::Rl
    ));
}

#[test]
fn a_mask_of_booleans_is_a_mask_of_ones_and_zeros() {
    let read = |mask: Value| {
        let mut steps = step(&[1, 2], &[3, 4, 5]);
        steps["tokens"]["completion_mask"] = mask.clone();
        let turns = json!({"prompt_ids": [1, 2], "response_ids": [3, 4, 5], "response_mask": mask, "uid": "u"});
        let sample =
            json!({"tokens": [1, 2, 3, 4, 5], "response_length": 3, "loss_mask": mask, "index": 9});
        told(&format!("{}{turns}\n{sample}\n", rollout(&[steps])), Harness::Rl)
    };
    assert_eq!(read(json!([true, false, true])), read(json!([1, 0, 1])));
}

#[test]
fn an_indented_document_and_compressed_lines_are_read_alike() {
    let log = rollout(&[step(&[1, 2], &[3]), step(&[1, 2, 3, 4], &[5])]);
    let value: Value = serde_json::from_str(&log).unwrap();
    let indented = serde_json::to_string_pretty(&value).unwrap();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gz.write_all(log.as_bytes()).unwrap();
    let gz = gz.finish().unwrap();
    let zst = zstd::encode_all(log.as_bytes(), 3).unwrap();
    let plain = told(&log, Harness::Rl);
    for bytes in [indented.into_bytes(), gz.clone(), zst] {
        let conversion =
            convert_from(&Input::memory("log.jsonl", bytes, []), None, ReadOptions::STRICT)
                .unwrap();
        assert_eq!(told_of(&conversion), plain);
        let Record::Header(header) = &conversion.records[0] else {
            panic!("a header stands first")
        };
        assert_eq!(header.fidelity, Fidelity::Token);
    }
    let cut = convert_from(
        &Input::memory("log.jsonl.gz", gz[..gz.len() / 2].to_vec(), []),
        Some(Harness::Rl),
        ReadOptions::LENIENT,
    );
    assert!(cut.unwrap_err().to_string().contains("its gzip stream is damaged behind"));
}

#[test]
fn lists_that_do_not_fit_are_faults_and_lenient_reading_drops_them() {
    let mut short = step(&[1, 2], &[3, 4]);
    short["tokens"]["completion_mask"] = json!([1]);
    let mut above = step(&[1, 2, 3, 4], &[5, 6]);
    above["tokens"]["completion_logprobs"] = json!([-0.1, 0.3]);
    let log = rollout(&[short, above, json!({"tokens": null, "trajectory_id": "main"})])
        + "{\"index\":1,\"tokens\":[1],\"response_length\":4}\n";
    insta::assert_snapshot!(rejected(&log, Harness::Rl));
    insta::assert_snapshot!(told_of(&convert_text(&log, None, ReadOptions::LENIENT).unwrap()));
}

#[test]
fn numbers_as_python_writes_them_are_faults_at_their_keys_and_the_ids_are_kept() {
    // Such numbers stand before the keys that tell the format, too.
    let log = r#"{"completion_logprobs":[-0.5,NaN,NaN],"prompt_ids":[1,2],"completion_ids":[3,4,5],"reward":1.0}
{"completion_mask":[1,Infinity],"prompt_ids":[1,2],"completion_ids":[6,7],"completion_logprobs":[-0.5,-0.5],"reward":-Infinity}
{"prompt_ids":[1,2],"completion_ids":[8],"completion_logprobs":[-0.5],"reward":0.0}
"#;
    insta::assert_snapshot!(rejected(log, Harness::Rl));
    assert_eq!(detect(&Input::memory("log.jsonl", log.into(), [])).unwrap(), Harness::Rl);
    let lenient = convert_text(log, None, ReadOptions::LENIENT).unwrap();
    insta::assert_snapshot!(told_of(&lenient));
}

#[test]
fn an_id_that_is_no_id_and_a_second_reward_are_named_with_line_and_key() {
    let line = |id: &str, reward: f64| {
        format!(
            "{{\"rollout_id\":\"q\",\"prompt_ids\":[1,{id}],\"completion_ids\":[2],\"reward\":{reward}}}\n"
        )
    };
    let log = line("-4", 1.0) + &line("4", 1.0) + &line("5", 0.0);
    insta::assert_snapshot!(rejected(&log, Harness::Rl));
}

#[test]
fn a_record_that_stands_twice_is_trained_once() {
    let log = rollout(&[step(&[1, 2], &[3])]);
    let one: Value = serde_json::from_str(&log).unwrap();
    let mut twice = one.clone();
    twice["trajectory"] = json!([one["trajectory"][0], one["trajectory"][0]]);
    twice["rollout_id"] = "q".into();
    let text = twice.to_string();
    let conversion = convert_text(&text, None, ReadOptions::STRICT).unwrap();
    assert_eq!(tree(&conversion).generations().len(), 1, "{:?}", found(&conversion.report));
}
