//! Contract: a preset is data: every number that it holds stands in its list with a source, and no
//! other.

use pleach_train::{
    advantage::{Baseline, LambdaConfig, Overlong, Scale, Timing},
    objective::Preset,
};

/// The numbers that a preset's fields hold.
fn held(preset: &Preset) -> Vec<(&'static str, f64)> {
    let mut held = vec![
        ("policy.clip.low", preset.policy.clip.low),
        ("policy.clip.high", preset.policy.clip.high),
    ];
    held.extend(preset.policy.clip.dual.map(|dual| ("policy.clip.dual", dual)));
    held.extend(preset.policy.truncation.map(|limit| ("policy.truncation", limit)));
    if preset.policy.reference_kl != 0.0 {
        held.push(("policy.reference_kl", preset.policy.reference_kl));
    }
    if let Some(gae) = preset.gae {
        held.push(("gae.gamma", gae.gamma));
        match gae.lambda {
            LambdaConfig::Fixed(lambda) => held.push(("gae.lambda", lambda)),
            LambdaConfig::LengthAdaptive { alpha, .. } => held.push(("gae.lambda.alpha", alpha)),
        }
    }
    held.extend(preset.group_size.map(|size| ("group_size", size as f64)));
    held
}

#[test]
fn every_number_of_a_preset_has_a_source() {
    for preset in Preset::all() {
        let mut listed: Vec<_> =
            preset.numbers.iter().map(|number| (number.what, number.value)).collect();
        let mut held = held(&preset);
        listed.sort_by(|a, b| a.0.cmp(b.0));
        held.sort_by(|a, b| a.0.cmp(b.0));
        assert_eq!(listed, held, "{}", preset.name);
        assert!(preset.numbers.iter().all(|number| !number.source.is_empty()));
    }
}

#[test]
fn presets_are_named_after_their_papers_and_do_what_these_say() {
    let names: Vec<&str> = Preset::all().iter().map(|preset| preset.name).collect();
    assert_eq!(names, ["supo", "resum_grpo", "compaction_rl", "auto_compact", "dapo"]);
    for preset in Preset::all().iter().filter(|preset| preset.name != "compaction_rl") {
        let advantage = preset.advantage.unwrap();
        assert_eq!(
            (advantage.baseline, advantage.scale),
            (Baseline::RolloutGroup, Scale::Deviation),
            "{}",
            preset.name
        );
        assert!(preset.gae.is_none());
    }
    assert_eq!(Preset::supo().advantage.unwrap().overlong, Overlong::Mask);
    let compaction = Preset::compaction_rl();
    assert!(compaction.advantage.is_none(), "a critic, and groups of one");
    assert_eq!(
        (compaction.gae.unwrap().timing, compaction.group_size),
        (Timing::Concatenated, Some(1))
    );
    let clip = Preset::dapo().policy.clip;
    assert_eq!((clip.low, clip.high, clip.dual), (0.20, 0.28, None));
}
