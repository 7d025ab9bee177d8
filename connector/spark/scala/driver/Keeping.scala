package org.apache.spark.scheduler.bellows

import scala.collection.mutable

/**
 * Which executors an application keeps between two stages. A stage that comes after those that run needs executors as
 * soon as they have ended, and to give all back in between would cost more than to keep them: they are kept for at most
 * Most divided by the number that the next stage can use, as pools do it for applications whose stages they know. It is
 * pure; times are of System.nanoTime.
 */
private[spark] final class Keeping {
  private val coming = mutable.HashMap.empty[String, Int] // stages that come next: how many executors they can use
  private var end: Option[Long] = None // when nothing is kept any more; None while nothing need be kept

  /** A stage comes after those that run. */
  def comes(stage: String, executors: Int): Unit = {
    coming(stage) = executors
    end = None
  }

  /** A stage has come, or comes no more. */
  def came(stage: String): Unit = {
    coming -= stage
    end = None
  }

  /** How many of the executors that are held are wanted, if the stages that run need so many. */
  def wanted(now: Long, needed: Int, held: Int): Int = {
    val next = coming.values.sum
    if (held <= needed || next == 0) {
      end = None
      needed
    } else {
      if (end.isEmpty) end = Some(now + Keeping.Most / next)
      if (now < end.get) needed.max(held.min(next))
      else {
        coming.clear()
        end = None
        needed
      }
    }
  }

  /** When wanted may say something else though nothing has happened. */
  def until: Option[Long] = end
}

private[spark] object Keeping {
  val Most = 2000000000L // ns of one executor
}
