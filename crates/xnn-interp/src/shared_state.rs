//! State that several entry points of a model share.

use crate::interpreter::Interpreter;

impl Interpreter {
    /// Moves the values of resource variables and hash tables from an interpreter of another entry
    /// point of the same model. Resources are matched by name; those that this entry point does not
    /// use remain there.
    ///
    /// A program that calls this before each run, with every other entry point, gives all of them
    /// one state, as TFLite's interpreter does for signatures: each value is in one interpreter at
    /// a time. Subgraphs that CALL_ONCE has run in one of them are not run again.
    pub fn adopt_state(&mut self, other: &mut Self) {
        let (plan, other_plan) = (self.machine.plan().clone(), other.machine.plan().clone());
        self.machine.resources.adopt(&plan.names, &mut other.machine.resources, &other_plan.names);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use xnn_model::op::{Op, VarHandleOptions};
    use xnn_model::{DType, Dialect};
    use xnn_testing::{GraphBuilder, ModelBuilder};

    use crate::{Entry, InterpOptions, Interpreter};

    fn handle(graph: &mut GraphBuilder, name: &str) -> usize {
        let handle = graph.tensor(name, DType::Resource, &[1]);
        let options = VarHandleOptions { container: String::new(), shared_name: name.into() };
        graph.op(Op::VarHandle(options), &[], &[handle]);
        handle
    }

    #[test]
    fn entry_points_share_variables_by_name() {
        let mut write = GraphBuilder::new("write");
        let x = write.input("x", DType::F32, &[2]);
        // The handles of the two entry points differ.
        let other = handle(&mut write, "other");
        let state = handle(&mut write, "state");
        write.op(Op::AssignVariable, &[other, x], &[]);
        write.op(Op::AssignVariable, &[state, x], &[]);
        let y = write.tensor("y", DType::F32, &[2]);
        write.op(Op::Neg, &[x], &[y]).output(y);
        let mut read = GraphBuilder::new("read");
        let state = handle(&mut read, "state");
        let value = read.tensor("value", DType::F32, &[2]);
        read.op(Op::ReadVariable, &[state], &[value]).output(value);
        let model = [write, read].into_iter();
        let model = model.fold(ModelBuilder::new(Dialect::Tflite), ModelBuilder::subgraph).build();
        let [mut write, mut read] = [0, 1].map(|id| {
            Interpreter::new(&model, Entry::Subgraph(id), &InterpOptions::default()).unwrap()
        });
        assert!(read.run().is_err());
        for values in [[1.0f32, 2.0], [3.0, 4.0]] {
            write.adopt_state(&mut read);
            write.input_mut(0).unwrap().bytes.copy_from_slice(bytemuck::cast_slice(&values));
            write.run().unwrap();
            read.adopt_state(&mut write);
            read.run().unwrap();
            assert_eq!(read.output(0).unwrap().as_slice::<f32>().unwrap(), values);
        }
        // The value is in one place only.
        write.adopt_state(&mut read);
        assert!(read.run().is_err());
    }
}
