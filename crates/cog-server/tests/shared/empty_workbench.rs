//! A workbench for the tests of what the routes do themselves.

use cog_module::{Diagnostic, Level, Module, Origin};
use cog_run::feedback::Feedback;
use cog_server::{ListedProvider, NewCase, TestRequest, Workbench};
use cog_spec::ErrorBody;
use futures_util::{
    StreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};

/// A workbench without tests, log and calibrations: what the routes do themselves is what is tested with it.
pub(crate) struct EmptyWorkbench;

impl Workbench for EmptyWorkbench {
    fn providers(&self) -> Vec<ListedProvider> {
        vec![ListedProvider { name: "openai".to_owned(), model: "a-model".to_owned(), is_configured: true }]
    }

    fn has_logs(&self) -> bool {
        false
    }

    fn check(&self, origin: &Origin) -> Vec<Diagnostic> {
        cog_module::validate(origin, Level::Any).diagnostics
    }

    fn test(
        &self,
        request: TestRequest,
    ) -> BoxFuture<'static, Result<BoxStream<'static, String>, ErrorBody>> {
        Box::pin(async move { Ok(stream::iter(request.cases).boxed()) })
    }

    fn add_case(&self, _: &Module, case: NewCase) -> Result<String, ErrorBody> {
        Ok(case.name)
    }

    fn runs(&self, _: Option<&str>, _: usize) -> Result<String, ErrorBody> {
        Ok("[]".to_owned())
    }

    fn run(&self, _: &str) -> Result<Option<String>, ErrorBody> {
        Ok(None)
    }

    fn label(&self, _: &str, _: Feedback) -> Result<Option<String>, ErrorBody> {
        Ok(None)
    }

    fn insights(&self, _: &Module) -> Result<String, ErrorBody> {
        Ok("{}".to_owned())
    }

    fn trust(&self, _: &Module) -> Result<String, ErrorBody> {
        Ok("{}".to_owned())
    }
}
