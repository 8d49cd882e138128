//! Contract: settings that mean nothing, pairs that fit no batch, batches of several trees and
//! teachers on another device are refused in clear words, before a tensor is touched.

use crate::fixtures::device::On;
use crate::fixtures::{
    causal,
    pairs::two,
    table::{Table, device},
};
use burn::tensor::{DType, Tensor};
use pleach_layout::TermId;
use pleach_train::{
    Batch, CausalModel, ObjectiveError, TrainError,
    objective::{Alignment, DivergenceConfig, DivergenceKind, Pairs, Support},
};

#[test]
fn settings_and_pairs_that_mean_nothing_are_refused() {
    let two = two();
    let table = Table::seeded(1);
    let refuse = |config: DivergenceConfig| {
        let sides = (
            (&table, table.hidden(&two.student).unwrap()),
            (&table, table.hidden(&two.teacher).unwrap()),
        );
        config.init().forward_hidden(sides.0, sides.1, &two.pairs).map(|_| ()).unwrap_err()
    };
    assert_eq!(refuse(DivergenceConfig::new().with_chunk(0)), TrainError::EmptyChunk);
    for temperature in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(
            refuse(DivergenceConfig::new().with_temperature(temperature)),
            TrainError::Objective(ObjectiveError::Setting { .. })
        ));
    }
    for beta in [0.0, 1.0, f64::NAN] {
        let config = DivergenceConfig::new().with_kind(DivergenceKind::JensenShannon(beta));
        assert!(matches!(refuse(config), TrainError::Objective(ObjectiveError::Setting { .. })));
    }
    assert!(matches!(
        refuse(DivergenceConfig::new().with_support(Support::TopK(0))),
        TrainError::Objective(ObjectiveError::Setting { .. })
    ));
    let aligned = |(generation, offset), teacher: (u32, u32)| {
        let student = TermId::new(generation, offset);
        let teacher = TermId::new(teacher.0, teacher.1);
        Pairs::new(two.student.terms(), two.teacher.terms(), [Alignment { student, teacher }])
            .unwrap_err()
    };
    assert_eq!(
        aligned((9, 0), (0, 0)),
        TrainError::Objective(ObjectiveError::Unpaired {
            generation: 9,
            offset: 0,
            side: "student"
        })
    );
    assert_eq!(
        aligned((0, 0), (9, 0)),
        TrainError::Objective(ObjectiveError::Unpaired {
            generation: 9,
            offset: 0,
            side: "teacher"
        })
    );
    let found = aligned((0, 0), (0, 0));
    assert_eq!(
        found,
        TrainError::Objective(ObjectiveError::Misaligned {
            generation: 0,
            offset: 0,
            expected: 1,
            found: 2
        })
    );
}

#[test]
fn pairs_that_were_written_by_hand_are_checked_against_the_hidden_states() {
    let (two, table) = (two(), Table::seeded(1));
    let refuse = |change: fn(&mut Pairs)| {
        let mut pairs = two.pairs.clone();
        change(&mut pairs);
        let sides = (
            (&table, table.hidden(&two.student).unwrap()),
            (&table, table.hidden(&two.teacher).unwrap()),
        );
        match DivergenceConfig::new()
            .init()
            .forward_hidden(sides.0, sides.1, &pairs)
            .map(|_| ())
            .unwrap_err()
        {
            TrainError::Objective(error) => error,
            error => panic!("{error}"),
        }
    };
    let length = |what| ObjectiveError::SignalLength { what, terms: 4, found: 3 };
    assert_eq!(refuse(|pairs| pairs.students.truncate(3)), length("students of pairs"));
    assert_eq!(refuse(|pairs| pairs.teachers.truncate(3)), length("teachers of pairs"));
    assert_eq!(refuse(|pairs| pairs.weights.truncate(3)), length("weights of pairs"));
    assert_eq!(refuse(|pairs| pairs.ids.truncate(3)), length("ids of pairs"));
    let outside = |pair, side, row, rows| ObjectiveError::Row { pair, side, row, rows };
    assert_eq!(refuse(|pairs| pairs.students[1] = 7), outside(1, "student", 7, 7));
    assert_eq!(refuse(|pairs| pairs.teachers[2] = -1), outside(2, "teacher", -1, 6));
    assert!(matches!(
        refuse(|pairs| pairs.weights[3] = f64::NAN),
        ObjectiveError::SignalValue { what: "weight of a pair", generation: 0, offset: 5, .. }
    ));
}

#[test]
fn a_batch_of_several_trees_is_refused_where_terms_go_by_their_names() {
    let (a, b) = (causal(&[0, 1, 2]), causal(&[3, 4, 5]));
    let batch = Batch::new(&[&a, &b], &device()).unwrap();
    let aligned = [Alignment { student: TermId::new(0, 0), teacher: TermId::new(0, 0) }];
    let expected = TrainError::Objective(ObjectiveError::Duplicate { generation: 0, offset: 0 });
    assert_eq!(Pairs::new(batch.terms(), batch.terms(), aligned).unwrap_err(), expected);
}

#[test]
fn a_teacher_on_another_device_is_refused() {
    let (two, table) = (two(), Table::seeded(1));
    let others = On::ALL.into_iter().filter_map(On::open);
    let Some(other) = others.into_iter().find(|other| *other != device().without_autodiff()) else {
        eprintln!("skipped: one device is built in");
        return;
    };
    let [b, t, width] = table.hidden(&two.teacher).unwrap().dims();
    let elsewhere_btc = Tensor::<3>::zeros([b, t, width], (&other, DType::F32));
    let student = (&table, table.hidden(&two.student).unwrap());
    let refused =
        DivergenceConfig::new().init().forward_hidden(student, (&table, elsewhere_btc), &two.pairs);
    let refused = refused.map(|_| ()).unwrap_err();
    assert!(
        matches!(&refused, TrainError::Unsupported { what } if what.contains("two devices")),
        "{refused}"
    );
}
