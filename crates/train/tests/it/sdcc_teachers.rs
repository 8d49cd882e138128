//! Contract: a moving average moves by its decay, on update alone, and only with the model that it
//! started at; a frozen teacher may compute in another dtype than its student.

use crate::fixtures::{
    near::{FEW, FORMULA_SINGLE, assert_all_near, assert_near},
    table::{Table, VOCABULARY, WIDTH, device, gradient, noise, scalar},
    trees::{GROUP, read},
};
use burn::{
    module::{Module, ModuleMapper, Param},
    tensor::Tensor,
};
use pleach_layout::Layouts;
use pleach_train::{
    Batch, CausalModel, TrainError,
    objective::{MovingAverage, SdccBatch, SdccConfig, Teacher},
};

/// Adds 1 to every parameter.
struct Shift;

impl ModuleMapper for Shift {
    fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
        parameter.map(|value| value.add_scalar(1.0))
    }
}

/// A table that may have parameters beside it.
#[derive(Module, Debug)]
struct Wider {
    table: Table,
    more: Option<Table>,
}

impl CausalModel for Wider {
    fn hidden(&self, batch: &Batch) -> Result<Tensor<3>, TrainError> {
        self.table.hidden(batch)
    }

    fn vocabulary(&self) -> usize {
        self.table.vocabulary()
    }

    fn logits(&self, hidden_nd: Tensor<2>) -> Tensor<2> {
        self.table.logits(hidden_nd)
    }
}

#[test]
fn a_moving_average_moves_by_the_decay_and_only_on_update() {
    let (start, later) = (Table::seeded(7), Table::seeded(7));
    let mut average = MovingAverage::new(&start, 0.9).unwrap();
    assert_eq!(average.model().values(), start.values());
    assert!(
        matches!(average.update(&later), Err(TrainError::Unsupported { .. })),
        "another model is not a later one"
    );
    let moved = start.clone().map(&mut Shift);
    average.update(&moved).unwrap();
    for (found, (old, new)) in
        average.model().values().iter().zip(start.values().iter().zip(moved.values()))
    {
        assert_near(*found, 0.9 * old + 0.1 * new, FEW, "average");
    }
    let mut teacher = Teacher::MovingAverage(average);
    let before = teacher.model(&moved).values();
    teacher.update(&moved).unwrap();
    assert_ne!(teacher.model(&moved).values(), before);
    assert!(MovingAverage::new(&start, 1.5).is_err());
    let mut average = MovingAverage::new(&Wider { table: start.clone(), more: None }, 0.9).unwrap();
    let wider = Wider { table: start.clone(), more: Some(Table::seeded(7)) };
    let refused = average.update(&wider).unwrap_err();
    assert!(
        matches!(&refused, TrainError::Unsupported { what } if what.contains("has 2 more")),
        "{refused}"
    );
    let mut live = Teacher::Live;
    live.update(&moved).unwrap();
    assert_eq!(live.model(&moved).values(), moved.values());
}

#[test]
fn a_frozen_teacher_may_compute_in_less_than_its_student() {
    let tree = read(GROUP);
    let batch = SdccBatch::new(&Layouts::new(&tree).unwrap(), &device()).unwrap();
    let (student, values) = (Table::seeded(13), noise(14, 2 * VOCABULARY * WIDTH));
    let sdcc = SdccConfig::new().init();
    let of = |teacher| sdcc.forward(&student, &Teacher::Frozen(teacher), &batch, 1.0).unwrap().loss;
    let (single, double) = (of(Table::single(&values)), of(Table::of(&values)));
    assert_near(scalar(&single), scalar(&double), FORMULA_SINGLE, "loss");
    assert_all_near(
        &gradient(&student, &single),
        &gradient(&student, &double),
        FORMULA_SINGLE,
        "gradient",
    );
}
