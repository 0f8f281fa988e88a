//! What several runs may spend together.

use cog_run::{Budget, BudgetLimits};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};

/// What several runs may spend together.
#[pyclass(name = "Budget", module = "cognitive", frozen)]
pub(crate) struct SharedBudget(pub(crate) Budget);

#[pymethods]
impl SharedBudget {
    #[new]
    #[pyo3(signature = (*, max_cost = None, max_tokens = None, max_calls = None, name = "the program"))]
    fn new(
        max_cost: Option<f64>,
        max_tokens: Option<u64>,
        max_calls: Option<u64>,
        name: &str,
    ) -> PyResult<Self> {
        if max_cost.is_some_and(|cost| !cost.is_finite() || cost < 0.0) {
            return Err(PyValueError::new_err("max_cost: allowed: US dollars, 0 and more"));
        }
        if max_cost.is_none() && max_tokens.is_none() && max_calls.is_none() {
            return Err(PyValueError::new_err("a budget needs a limit: max_cost, max_tokens or max_calls"));
        }
        Ok(Self(Budget::new(name, BudgetLimits { max_cost, max_tokens, max_calls })))
    }

    /// What was spent so far: `calls`, `tokens` and `cost`, which is None if the price of a call is unknown.
    #[getter]
    fn spent<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let spent = self.0.spent();
        let dict = PyDict::new(py);
        dict.set_item("calls", spent.calls)?;
        dict.set_item("tokens", spent.tokens)?;
        dict.set_item("cost", spent.cost)?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        let spent = self.0.spent();
        let cost = spent.cost.map_or_else(|| "None".to_owned(), |cost| cost.to_string());
        format!("Budget(calls={}, tokens={}, cost={cost})", spent.calls, spent.tokens)
    }
}
