use super::{Answer, Naive, Target, assert_close, differentiate, targets};
use burn::tensor::DType;
use pleach_kernels::{AttentionConfig, Execution, TreeMask, tree_attention};

/// An execution of attention on a device, in a dtype.
pub(crate) struct Runner {
    pub(crate) target: Target,
    pub(crate) execution: Execution,
}

impl Runner {
    pub(crate) fn name(&self) -> String {
        format!("{:?} on {}", self.execution, self.target.name)
    }

    /// As [`Target::compiles`].
    pub(crate) fn compiles(&self) -> bool {
        self.target.compiles()
    }

    pub(crate) fn is_single(&self) -> bool {
        self.target.dtype == DType::F32
    }

    pub(crate) fn mask(&self, problem: &Naive) -> TreeMask {
        let mask = TreeMask::new(&problem.ends, &self.target.device).expect("a valid mask");
        match problem.window {
            Some(window) => mask.with_window(&problem.positions, window).expect("valid positions"),
            None => mask,
        }
    }

    pub(crate) fn config(&self, scale: f64) -> AttentionConfig {
        AttentionConfig { scale, execution: self.execution }
    }

    /// The output and gradients of a problem.
    pub(crate) fn run(&self, problem: &Naive) -> Answer {
        self.run_under(problem, &self.mask(problem))
    }

    /// The same under a mask that was made before.
    pub(crate) fn run_under(&self, problem: &Naive, mask: &TreeMask) -> Answer {
        let config = self.config(problem.scale);
        differentiate(problem, &self.target, |[q, k, v]| {
            tree_attention(q, k, v, mask, &config).expect("a valid call")
        })
    }

    /// Asserts that the answer to a problem is `expected`, to rounding.
    pub(crate) fn check(&self, context: &str, problem: &Naive, expected: &Answer) {
        assert_close(
            &format!("{context}, {:?}", self.execution),
            &self.target,
            &self.run(problem),
            expected,
        );
    }
}

/// The block-sparse kernels of every device, in every dtype that it computes in.
pub(crate) fn kernels() -> Vec<Runner> {
    let native = |target: Target| {
        let execution = Execution::Auto.on(&target.device).expect("a device always runs something");
        (execution != Execution::Reference).then_some(Runner { target, execution })
    };
    targets().into_iter().filter_map(native).collect()
}

/// The kernels, and the reference on CPU devices.
pub(crate) fn runners() -> Vec<Runner> {
    let reference = |target| Runner { target, execution: Execution::Reference };
    let dense = targets().into_iter().map(reference).filter(|runner| !runner.compiles());
    dense.chain(kernels()).collect()
}
