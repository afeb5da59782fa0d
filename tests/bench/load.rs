//! Load: callers that go on until a deadline, and what they saw.

use std::time::{Duration, Instant};

/// How long one round of load lasts.
pub(crate) const WINDOW: Duration = Duration::from_secs(1);

/// What a round saw: how long everything took, and every latency.
pub(crate) struct Sample {
    took: Duration,
    count: u64,
    latencies: Vec<Duration>,
}

impl Sample {
    /// A round in which only the whole was timed.
    pub(crate) fn of_count(count: u64, took: Duration) -> Self {
        Self { took, count, latencies: Vec::new() }
    }

    pub(crate) fn of_latencies(latencies: Vec<Duration>, took: Duration) -> Self {
        Self { took, count: latencies.len() as u64, latencies }
    }

    pub(crate) fn per_second(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "counts of one second")]
        let count = self.count as f64;
        count / self.took.as_secs_f64()
    }

    /// Without latencies there is none: NaN.
    pub(crate) fn percentile_ms(&self, percent: f64) -> f64 {
        percentile_ms(&self.latencies, percent)
    }
}

/// The latency that so many percent do not exceed, in milliseconds.
pub(crate) fn percentile_ms(latencies: &[Duration], percent: f64) -> f64 {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index"
    )]
    let at = ((sorted.len() as f64) * percent / 100.0).ceil() as usize;
    sorted.get(at.saturating_sub(1)).map_or(f64::NAN, |latency| latency.as_secs_f64() * 1000.0)
}

/// Runs `callers` tasks, each calling again as soon as it was answered, until the window is over.
pub(crate) async fn drive<C, A>(callers: Vec<C>) -> anyhow::Result<Sample>
where
    C: FnMut(i64) -> A + Send + 'static,
    A: Future<Output = anyhow::Result<()>> + Send,
{
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for (seed, mut call) in callers.into_iter().enumerate() {
        tasks.spawn(async move {
            let mut dice = Dice::new(seed as u64);
            let mut latencies = Vec::new();
            while started.elapsed() < WINDOW {
                let asked = Instant::now();
                call(dice.subject()).await?;
                latencies.push(asked.elapsed());
            }
            anyhow::Ok(latencies)
        });
    }
    let mut latencies = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        latencies.extend(ended??);
    }
    Ok(Sample::of_latencies(latencies, started.elapsed()))
}

/// Numbers that look random (splitmix64): which member the next event is about.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self(seed ^ u64::from(now.subsec_nanos()) << 32)
    }

    /// One of a million members.
    pub(crate) fn subject(&mut self) -> i64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        i64::try_from((mixed ^ (mixed >> 31)) % 1_000_000).unwrap_or(0) + 1
    }
}
