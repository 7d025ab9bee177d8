package org.apache.spark.executor.bellows

/** What is waited for gets its time, and no more, however long the container is stopped meanwhile. */
object PatienceTest {
  /** Time that passes only while somebody sleeps. The container is stopped once, at some ms, for some ms. */
  private final class Pretended(stopAt: Long, stopFor: Long) extends Clock {
    var awake = 0L // ms
    override def nanos: Long = (awake + (if (awake > stopAt) stopFor else 0L)) * 1000000L + 7
    override def sleep(millis: Long): Unit = awake += millis
  }

  def main(args: Array[String]): Unit = {
    for {
      stopAt <- Seq(0L, 100L, 199L, 200L, 5000L, 9999L)
      stopFor <- Seq(0L, 60000L, 3600000L)
      needs <- Seq(0L, 150L, 300L, 4000L, 9990L, Long.MaxValue)
    } {
      val clock = new Pretended(stopAt, stopFor)
      var killed = Option.empty[Long]
      val ended = Patience.awaitEnd(200, 10000, clock)(clock.awake < needs) {
        require(killed.isEmpty, "it was ended twice")
        killed = Some(clock.awake)
      }
      val what = s"stopped at $stopAt ms for $stopFor ms: of $needs ms, ended $ended at ${clock.awake}, killed $killed"
      require(ended == needs < 10000 && clock.awake - needs.min(10000) <= 1, what)
      require(killed.isDefined == needs > 200 && killed.forall(at => at >= 200 && at <= 201), what)
    }
    println("patience: kept")
  }
}
