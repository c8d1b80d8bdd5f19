//! Directed graphs with one entry, and trees that answer "lowest common ancestor".
//!
//! Invariant: nodes are `0..len`, node 0 is the entry. Successors have the order in which edges were given;
//! duplicate edges are kept. Every walk is iterative and takes at most `O(edges log nodes)` for any graph, so
//! a hostile text can neither overflow the stack nor make lowering quadratic.
//!
//! Graphs are independent of blocks and instructions. The [block order](super::order) and the analyses use
//! them.

/// A directed graph; node 0 is the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    succs: Adjacency,
    preds: Adjacency,
}

/// Neighbours of all nodes, one after another.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Adjacency {
    start: Vec<usize>,
    node: Vec<usize>,
}

impl Adjacency {
    fn new(len: usize, edges: impl Iterator<Item = (usize, usize)> + Clone) -> Self {
        let mut start = vec![0; len + 1];
        for (from, _) in edges.clone() {
            start[from + 1] += 1;
        }
        for i in 0..len {
            start[i + 1] += start[i];
        }
        let mut next = start.clone();
        let mut node = vec![0; start[len]];
        for (from, to) in edges {
            node[next[from]] = to;
            next[from] += 1;
        }
        Self { start, node }
    }

    fn of(&self, v: usize) -> &[usize] {
        &self.node[self.start[v]..self.start[v + 1]]
    }
}

impl Graph {
    /// A graph of `len` nodes with these edges.
    ///
    /// # Panics
    /// If an edge names a node that is not below `len`.
    pub fn new(len: usize, edges: &[(usize, usize)]) -> Self {
        Self {
            succs: Adjacency::new(len, edges.iter().copied()),
            preds: Adjacency::new(len, edges.iter().map(|&(from, to)| (to, from))),
        }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.succs.start.len() - 1
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The successors of `v`.
    pub fn succs(&self, v: usize) -> &[usize] {
        self.succs.of(v)
    }

    /// The predecessors of `v`.
    pub fn preds(&self, v: usize) -> &[usize] {
        self.preds.of(v)
    }

    /// All edges, by source.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.len()).flat_map(|v| self.succs(v).iter().map(move |&s| (v, s)))
    }
}

/// Marks an unreached node, or the parent of a root.
pub const NONE: usize = usize::MAX;

/// A depth-first walk from the entry.
#[derive(Clone, Debug)]
pub struct DepthFirst {
    /// Reached nodes in preorder.
    pub preorder: Vec<usize>,
    /// Reached nodes in postorder.
    pub postorder: Vec<usize>,
    /// Position in `preorder`, or [`NONE`].
    pub number: Vec<usize>,
    /// Parent in the depth-first tree, or [`NONE`].
    pub parent: Vec<usize>,
}

impl DepthFirst {
    /// Walks the graph from node 0, successors in their order.
    pub fn new(graph: &Graph) -> Self {
        let len = graph.len();
        let mut walk = Self {
            preorder: Vec::with_capacity(len),
            postorder: Vec::with_capacity(len),
            number: vec![NONE; len],
            parent: vec![NONE; len],
        };
        if len == 0 {
            return walk;
        }
        walk.number[0] = 0;
        walk.preorder.push(0);
        let mut stack = vec![(0, 0)];
        while let Some(top) = stack.last_mut() {
            let (v, next) = *top;
            top.1 += 1;
            match graph.succs(v).get(next) {
                Some(&s) if walk.number[s] == NONE => {
                    walk.number[s] = walk.preorder.len();
                    walk.preorder.push(s);
                    walk.parent[s] = v;
                    stack.push((s, 0));
                }
                Some(_) => {}
                None => {
                    walk.postorder.push(v);
                    stack.pop();
                }
            }
        }
        walk
    }

    /// Whether the walk reached `v`.
    pub fn reached(&self, v: usize) -> bool {
        self.number[v] != NONE
    }
}

/// A forest, given by parents, that finds ancestors in `O(log n)` steps.
///
/// Each node has its parent and one further ancestor, chosen so that both kinds of steps together act as a
/// binary search (the "skew-binary" jump pointers of Myers, 1983).
#[derive(Clone, Debug)]
pub struct Tree {
    parent: Vec<usize>,
    jump: Vec<usize>,
    depth: Vec<usize>,
}

impl Tree {
    /// Builds the tree over `root` from parents; `top_down` lists every other node after its parent.
    pub fn new(parent: Vec<usize>, root: usize, top_down: impl Iterator<Item = usize>) -> Self {
        let mut tree = Self { jump: vec![root; parent.len()], depth: vec![0; parent.len()], parent };
        tree.parent[root] = root;
        for v in top_down {
            let p = tree.parent[v];
            let j = tree.jump[p];
            tree.depth[v] = tree.depth[p] + 1;
            let even = tree.depth[p] - tree.depth[j] == tree.depth[j] - tree.depth[tree.jump[j]];
            tree.jump[v] = if even { tree.jump[j] } else { p };
        }
        tree
    }

    /// Parent of a node; the root is its own parent.
    pub fn parent(&self, v: usize) -> usize {
        self.parent[v]
    }

    /// Distance from the root.
    pub fn depth(&self, v: usize) -> usize {
        self.depth[v]
    }

    /// The ancestor of `v` at that depth; `v` itself if it is not deeper.
    pub fn ancestor_at(&self, mut v: usize, depth: usize) -> usize {
        while self.depth[v] > depth {
            let jump = self.jump[v];
            v = if self.depth[jump] >= depth { jump } else { self.parent[v] };
        }
        v
    }

    /// The lowest common ancestor, which may be one of the nodes.
    pub fn common_ancestor(&self, a: usize, b: usize) -> usize {
        let depth = self.depth[a].min(self.depth[b]);
        let (mut a, mut b) = (self.ancestor_at(a, depth), self.ancestor_at(b, depth));
        while a != b {
            if self.jump[a] == self.jump[b] {
                (a, b) = (self.parent[a], self.parent[b]);
            } else {
                (a, b) = (self.jump[a], self.jump[b]);
            }
        }
        a
    }

    /// Whether `a` is `v` or an ancestor of it.
    pub fn is_ancestor(&self, a: usize, v: usize) -> bool {
        self.ancestor_at(v, self.depth[a]) == a
    }
}

/// Disjoint sets with named representatives.
pub(crate) struct DisjointSets {
    up: Vec<usize>,
}

impl DisjointSets {
    pub(crate) fn new(len: usize) -> Self {
        Self { up: (0..len).collect() }
    }

    /// The representative of the set of `v`, with path halving.
    pub(crate) fn find(&mut self, mut v: usize) -> usize {
        while self.up[v] != v {
            self.up[v] = self.up[self.up[v]];
            v = self.up[v];
        }
        v
    }

    /// Merges the set of representative `v` into that of representative `into`.
    pub(crate) fn put(&mut self, v: usize, into: usize) {
        self.up[v] = into;
    }
}

#[cfg(test)]
pub(crate) mod random {
    //! Random graphs for property tests.

    use super::Graph;

    /// xorshift64*, sufficient for these tests.
    pub(crate) struct Rng(u64);

    impl Rng {
        pub(crate) fn new(seed: u64) -> Self {
            Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
        }

        pub(crate) fn below(&mut self, n: usize) -> usize {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
            (high as usize) % n
        }
    }

    /// A graph of up to `max` nodes with 0 to 3 successors each, every node reachable; often irreducible.
    pub(crate) fn graph(seed: u64, max: usize) -> Graph {
        let mut rng = Rng::new(seed);
        let n = 1 + rng.below(max);
        let mut edges = Vec::new();
        for v in 1..n {
            edges.push((rng.below(v), v));
        }
        for _ in 0..rng.below(n + 2) {
            edges.push((rng.below(n), rng.below(n)));
        }
        Graph::new(n, &edges)
    }

    /// A reducible graph, as from structured code with `break`, `continue` and `return`.
    pub(crate) fn structured(seed: u64, statements: usize) -> Graph {
        let mut rng = Rng::new(seed);
        let mut build = Build { edges: Vec::new(), n: 1, budget: statements };
        let mut loops = Vec::new();
        let last = build.sequence(&mut rng, Some(0), &mut loops);
        if let Some(last) = last {
            build.n += 1;
            build.edges.push((last, build.n - 1));
        }
        Graph::new(build.n, &build.edges)
    }

    struct Build {
        edges: Vec<(usize, usize)>,
        n: usize,
        budget: usize,
    }

    impl Build {
        fn node(&mut self, from: usize) -> usize {
            self.edges.push((from, self.n));
            self.n += 1;
            self.n - 1
        }

        /// Adds statements after `at`; `None` if control does not reach their end. `loops`: header and
        /// pending breaks.
        fn sequence(
            &mut self,
            rng: &mut Rng,
            mut at: Option<usize>,
            loops: &mut Vec<(usize, Vec<usize>)>,
        ) -> Option<usize> {
            for _ in 0..1 + rng.below(4) {
                let here = at?;
                if self.budget == 0 {
                    return at;
                }
                self.budget -= 1;
                at = match rng.below(8) {
                    0 | 1 => Some(self.node(here)),
                    2 | 3 => {
                        let then = self.node(here);
                        let then = self.sequence(rng, Some(then), loops);
                        let els = if rng.below(2) == 0 {
                            Some(here)
                        } else {
                            let els = self.node(here);
                            self.sequence(rng, Some(els), loops)
                        };
                        match (then, els) {
                            (None, None) => None,
                            (Some(a), None) | (None, Some(a)) => Some(self.node(a)),
                            (Some(a), Some(b)) => {
                                let join = self.node(a);
                                self.edges.push((b, join));
                                Some(join)
                            }
                        }
                    }
                    4 | 5 => {
                        let head = self.node(here);
                        loops.push((head, Vec::new()));
                        let test_first = rng.below(2) == 0;
                        let body = self.node(head);
                        let end = self.sequence(rng, Some(body), loops);
                        if let Some(end) = end {
                            self.edges.push((end, head));
                        }
                        let (_, mut breaks) = loops.pop().expect("pushed above");
                        if test_first {
                            breaks.push(head);
                        } else if let Some(end) = end {
                            breaks.push(end);
                        }
                        let mut out = None;
                        for b in breaks {
                            match out {
                                None => out = Some(self.node(b)),
                                Some(o) => self.edges.push((b, o)),
                            }
                        }
                        out
                    }
                    6 => match loops.last_mut() {
                        Some((head, breaks)) => {
                            if rng.below(2) == 0 {
                                breaks.push(here);
                            } else {
                                let head = *head;
                                self.edges.push((here, head));
                            }
                            if rng.below(2) == 0 { None } else { Some(self.node(here)) }
                        }
                        None => Some(self.node(here)),
                    },
                    _ => {
                        self.node(here);
                        Some(self.node(here))
                    }
                };
            }
            at
        }
    }
}

#[cfg(test)]
mod tests {
    use super::random::{Rng, graph};
    use super::*;

    #[test]
    fn neighbours_keep_their_order() {
        let g = Graph::new(4, &[(0, 2), (0, 1), (1, 3), (2, 3), (0, 2)]);
        assert_eq!(g.succs(0), [2, 1, 2]);
        assert_eq!(g.preds(3), [1, 2]);
        assert_eq!(g.preds(2), [0, 0]);
        assert_eq!(g.succs(3), []);
        assert_eq!(g.edges().count(), 5);
    }

    #[test]
    fn depth_first_visits_what_is_reachable() {
        let g = Graph::new(5, &[(0, 2), (2, 1), (1, 0), (3, 4)]);
        let walk = DepthFirst::new(&g);
        assert_eq!(walk.preorder, [0, 2, 1]);
        assert_eq!(walk.postorder, [1, 2, 0]);
        assert!(!walk.reached(3));
        assert_eq!(walk.parent[1], 2);
    }

    #[test]
    fn tree_ancestors_match_walking_up() {
        for seed in 0..50 {
            let mut rng = Rng::new(seed);
            let n = 1 + rng.below(200);
            let parent: Vec<usize> = (0..n).map(|v| if v == 0 { 0 } else { rng.below(v) }).collect();
            let tree = Tree::new(parent.clone(), 0, 1..n);
            let path = |mut v: usize| {
                let mut path = vec![v];
                while v != 0 {
                    v = parent[v];
                    path.push(v);
                }
                path.reverse();
                path
            };
            for _ in 0..100 {
                let (a, b) = (rng.below(n), rng.below(n));
                let (pa, pb) = (path(a), path(b));
                let common = pa.iter().zip(&pb).filter(|(x, y)| x == y).count();
                assert_eq!(tree.common_ancestor(a, b), pa[common - 1], "seed {seed}");
                assert_eq!(tree.is_ancestor(a, b), pb.contains(&a), "seed {seed}");
                let depth = rng.below(pa.len());
                assert_eq!(tree.ancestor_at(a, depth), pa[depth], "seed {seed}");
            }
        }
    }

    #[test]
    fn random_graphs_are_connected() {
        for seed in 0..100 {
            let g = graph(seed, 20);
            assert_eq!(DepthFirst::new(&g).preorder.len(), g.len(), "seed {seed}");
            let s = random::structured(seed, 20);
            assert_eq!(DepthFirst::new(&s).preorder.len(), s.len(), "seed {seed}");
        }
    }
}
