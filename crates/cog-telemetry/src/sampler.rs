//! Which traces are recorded (`OTEL_TRACES_SAMPLER`).

use cog_run::events::SpanContext;

/// Decides whether a span is recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampler {
    /// The share of traces that are recorded, from 0 to 1.
    pub ratio: f64,
    /// Whether a span with a parent follows its decision.
    pub parent_based: bool,
}

impl Default for Sampler {
    fn default() -> Self {
        Self { ratio: 1.0, parent_based: true }
    }
}

impl Sampler {
    /// Reads `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`. None for an unknown name or ratio.
    pub(crate) fn read(name: &str, argument: Option<&str>) -> Option<Self> {
        let (parent_based, name) = match name.strip_prefix("parentbased_") {
            Some(name) => (true, name),
            None => (false, name),
        };
        let ratio = match name {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => argument.map_or(Some(1.0), |text| text.parse().ok())?,
            _ => return None,
        };
        (0.0..=1.0).contains(&ratio).then_some(Self { ratio, parent_based })
    }

    /// Decides about a span. Programs with the same ratio record the same traces.
    pub(crate) fn is_sampled(self, parent: Option<&SpanContext>, trace_id: [u8; 16]) -> bool {
        if let Some(parent) = parent.filter(|_| self.parent_based) {
            return parent.is_sampled;
        }
        let low = trace_id.last_chunk().copied().map_or(0, u64::from_be_bytes);
        // 63 bits, as the SDKs of OpenTelemetry compare them.
        self.ratio >= 1.0 || ((low >> 1) as f64) < self.ratio * (1_u64 << 63) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(low: u64) -> [u8; 16] {
        (u128::from(low) | 1 << 100).to_be_bytes()
    }

    #[test]
    fn ratio_selects_by_the_trace() {
        let half = Sampler::read("traceidratio", Some("0.5")).unwrap();
        assert!(half.is_sampled(None, trace(0)) && half.is_sampled(None, trace(u64::MAX / 2 - 10_000)));
        assert!(!half.is_sampled(None, trace(u64::MAX)) && !half.is_sampled(None, trace(u64::MAX / 2 + 2)));
        let (on, off) =
            (Sampler::read("always_on", None).unwrap(), Sampler::read("always_off", None).unwrap());
        assert!(on.is_sampled(None, trace(u64::MAX)) && !off.is_sampled(None, trace(0)));
    }

    #[test]
    fn parent_decides_if_asked() {
        let parent =
            |is_sampled| SpanContext { trace_id: trace(1), span_id: [1; 8], is_sampled, state: None };
        let (based, plain) = (Sampler::default(), Sampler { parent_based: false, ..Sampler::default() });
        assert!(
            !based.is_sampled(Some(&parent(false)), trace(1))
                && plain.is_sampled(Some(&parent(false)), trace(1))
        );
        let never = Sampler::read("parentbased_always_off", None).unwrap();
        assert!(never.is_sampled(Some(&parent(true)), trace(1)) && !never.is_sampled(None, trace(1)));
    }

    #[test]
    fn unknown_samplers_are_refused() {
        for (name, argument) in
            [("jaeger_remote", None), ("traceidratio", Some("2")), ("traceidratio", Some("x"))]
        {
            assert_eq!(Sampler::read(name, argument), None);
        }
    }
}
