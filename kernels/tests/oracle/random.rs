/// A small deterministic generator (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Numbers in [-1, 1) that float32 holds exactly, so that every dtype sees the same problem.
    pub(crate) fn values(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| (self.next() >> 44) as f64 / (1u64 << 19) as f64 - 1.0).collect()
    }

    /// Ends of a random tree in depth-first order: the parent of a token is the one before it or
    /// one of its ancestors.
    pub(crate) fn tree(&mut self, time: usize) -> Vec<i32> {
        let mut ends = vec![time as i32; time];
        let mut path: Vec<usize> = Vec::new();
        for token in 0..time {
            if token > 0 && self.below(4) == 0 {
                let keep = self.below(path.len() + 1);
                for closed in path.drain(keep..) {
                    ends[closed] = token as i32;
                }
            }
            path.push(token);
        }
        ends
    }

    /// Ends of a random tree in pieces of up to `longest` tokens, so that it is deep and its
    /// branches cross tiles.
    pub(crate) fn pieces(&mut self, time: usize, longest: usize) -> Vec<i32> {
        let mut ends = vec![time as i32; time];
        let mut open: Vec<std::ops::Range<usize>> = Vec::new();
        let mut token = 0;
        while token < time {
            for _ in 0..self.below(open.len().min(2) + 1) {
                let Some(closed) = open.pop() else { break };
                ends[closed].fill(token as i32);
            }
            let piece = token..time.min(token + 1 + self.below(longest));
            token = piece.end;
            open.push(piece);
        }
        ends
    }

    /// Ends that do not nest, as keys and values evicted in place leave them.
    pub(crate) fn evictions(&mut self, time: usize) -> Vec<i32> {
        (0..time).map(|token| (token + 1 + self.below(time - token)) as i32).collect()
    }
}
