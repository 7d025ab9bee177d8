package org.apache.spark.executor.bellows

import java.util.concurrent.TimeUnit

/** Time as threads of this JVM see it. */
private[bellows] trait Clock {
  def nanos: Long
  def sleep(millis: Long): Unit
}

private[bellows] object Clock extends Clock {
  override def nanos: Long = System.nanoTime
  override def sleep(millis: Long): Unit = Thread.sleep(millis)
}

/**
 * How long something has been waited for. The container may be stopped for minutes meanwhile, or the JVM collect
 * garbage: what is waited for stands still, too, so that this time does not count.
 */
private[bellows] final class Patience(clock: Clock = Clock) {
  import Patience._

  private var last = clock.nanos
  private var waited = 0L // ns

  /** Waits until something is so, and looks every so many ms; false if it is not so after so many ms in all. */
  def await(millis: Long, every: Long)(is: => Boolean): Boolean = {
    while (!is) {
      if (TimeUnit.NANOSECONDS.toMillis(waited) >= millis) return false
      clock.sleep(every)
      val now = clock.nanos
      if (now - last < StillFromNanos) waited += now - last
      last = now
    }
    true
  }
}

private[bellows] object Patience {
  /** A thread that sleeps for some ms sleeps so long only if nothing in the JVM runs. */
  private val StillFromNanos = TimeUnit.SECONDS.toNanos(1)

  /**
   * Waits until nothing runs: for a while of itself, then because it was ended. It returns false if it runs
   * nevertheless, so many ms after the beginning.
   */
  def awaitEnd(endAfter: Long, giveUp: Long, clock: Clock = Clock)(runs: => Boolean)(end: => Unit): Boolean = {
    val patience = new Patience(clock)
    patience.await(endAfter, 1)(!runs) || {
      end
      patience.await(giveUp, 1)(!runs)
    }
  }
}
