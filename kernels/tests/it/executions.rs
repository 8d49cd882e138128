//! Contract: the execution is chosen or forced in the open: `Auto` is the kernels of the device, a
//! forced one that the device cannot run is an error that names what can, and what runs is the same
//! with and without gradients.
use crate::oracle::{Naive, Part, Random, Runner, Target, kernels, targets, values};
use burn::tensor::{Device, Tensor};
use pleach_kernels::{AttentionConfig, Execution, KernelError, TreeMask, tree_attention};

fn native(target: &Target) -> Execution {
    if target.compiles() { Execution::Cube } else { Execution::Cpu }
}

fn attempt(target: &Target, execution: Execution) -> Result<Tensor<4>, KernelError> {
    let mask = TreeMask::new(&[[3, 2, 3]], &target.device).unwrap();
    let x = Tensor::<4>::ones([1, 1, 3, 16], (&target.device, target.dtype));
    let config = AttentionConfig { scale: 1.0, execution };
    tree_attention(x.clone(), x.clone(), x, &mask, &config)
}

#[test]
fn auto_is_the_kernels_of_the_device() {
    for target in targets() {
        for device in [target.device.clone(), target.device.clone().without_autodiff()] {
            assert_eq!(Execution::Auto.on(&device), Ok(native(&target)), "{}", target.name);
            assert_eq!(native(&target).on(&device), Ok(native(&target)), "{}", target.name);
            assert_eq!(
                Execution::Reference.on(&device),
                Ok(Execution::Reference),
                "{}",
                target.name
            );
        }
    }
    assert_eq!(Execution::default(), Execution::Auto);
    assert_eq!(
        AttentionConfig::for_head_dim(16),
        AttentionConfig { scale: 0.25, execution: Execution::Auto }
    );
}

#[test]
fn a_forced_execution_that_the_device_cannot_run_is_an_error() {
    for target in targets() {
        let (forced, advice) = match native(&target) {
            Execution::Cube => (Execution::Cpu, "Execution::Auto or Execution::Cube"),
            _ => (Execution::Cube, "Execution::Auto or Execution::Cpu"),
        };
        let found = attempt(&target, forced).unwrap_err();
        let device = format!("{:?}", target.device);
        assert_eq!(
            found,
            KernelError::Execution { execution: forced, device: device.clone(), advice }
        );
        assert_eq!(
            found.to_string(),
            format!("execution {forced:?} does not run on {device}: use {advice}")
        );
        assert_eq!(forced.on(&target.device), Err(found));
    }
}

#[test]
fn auto_gives_the_bits_of_what_it_stands_for() {
    let mut random = Random(1);
    let ends = vec![random.pieces(90, 20)];
    let problem = Naive::random(&mut random, [4, 2, 16], ends);
    for forced in kernels() {
        let expected = forced.run(&problem);
        let auto = Runner { execution: Execution::Auto, ..forced };
        auto.run(&problem).assert_same_bits(&auto.name(), &expected);
    }
}

#[test]
fn without_autodiff_the_output_has_the_same_bits() {
    let mut random = Random(2);
    let ends = vec![random.pieces(90, 20)];
    let problem = Naive::random(&mut random, [4, 2, 16], ends);
    for runner in kernels() {
        let expected = runner.run(&problem).o;
        let device: Device = runner.target.device.clone().without_autodiff();
        let plain = Target { name: runner.target.name.clone(), device, dtype: runner.target.dtype };
        let [q, k, v, _] = problem.constants(&plain);
        let mask = TreeMask::new(&problem.ends, &plain.device).unwrap();
        let o = tree_attention(q, k, v, &mask, &runner.config(problem.scale)).unwrap();
        assert!(values(o) == expected, "{}", runner.name());
    }
}

#[test]
fn only_what_asks_for_a_gradient_gets_one_and_it_has_the_same_bits() {
    let mut random = Random(3);
    let ends = vec![random.pieces(90, 20)];
    let problem = Naive::random(&mut random, [4, 2, 16], ends);
    for runner in kernels() {
        let expected = runner.run(&problem);
        let mask = runner.mask(&problem);
        for asked in
            [[true, false, false], [false, true, false], [false, false, true], [false, true, true]]
        {
            let tensors = problem.constants(&runner.target);
            let upstream = tensors[3].clone();
            let inputs = [0, 1, 2].map(|i| match asked[i] {
                true => tensors[i].clone().require_grad(),
                false => tensors[i].clone(),
            });
            let [q, k, v] = inputs.clone();
            let o = tree_attention(q, k, v, &mask, &runner.config(problem.scale)).unwrap();
            let gradients = o.mul(upstream).sum().backward();
            for (i, part) in [Part::Dq, Part::Dk, Part::Dv].into_iter().enumerate() {
                let found = inputs[i].grad(&gradients).map(values);
                let expected = asked[i].then(|| expected.part(part).to_vec());
                assert!(found == expected, "{}: {part:?} of {asked:?}", runner.name());
            }
        }
    }
}

#[test]
fn a_call_where_nothing_asks_for_a_gradient_is_a_constant() {
    let mut random = Random(4);
    let problem = Naive::random(&mut random, [2, 1, 16], vec![vec![3, 2, 3]]);
    for runner in kernels() {
        let [q, k, v, _] = problem.constants(&runner.target);
        let o =
            tree_attention(q, k, v, &runner.mask(&problem), &runner.config(problem.scale)).unwrap();
        assert!(!o.is_require_grad());
        let factor = Tensor::<4>::ones(o.dims(), (&runner.target.device, runner.target.dtype))
            .require_grad();
        let gradients = o.clone().mul(factor.clone()).sum().backward();
        assert!(values(factor.grad(&gradients).unwrap()) == values(o), "{}", runner.name());
    }
}
