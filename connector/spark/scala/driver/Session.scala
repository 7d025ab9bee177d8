package org.apache.spark.scheduler.bellows

import scala.collection.mutable

/** An executor of the pool that is attached to this application. The number is unique in the pool. */
final case class Attachment(number: Long, executor: Int, stage: Int)

/** What has happened to an attachment, as the pool says: see Change of the protocol of pools. */
final case class Change(number: Long, what: String, attachment: Attachment, failed: Boolean, cause: String,
    why: String)

object Change {
  val Assigned = "assigned"
  val Asked = "asked"
  val Ended = "ended"
}

/** The next message to the pool. lease counts the leases of the application: an answer of an earlier one is void. */
final case class Growth(lease: Int, number: Long, begins: Boolean, demand: Option[Int], coming: Option[Int],
    holds: Seq[Attachment], givesBack: Seq[Long], closed: Boolean)

/** What the scheduler of Spark has to do. */
sealed trait Effect

object Effect {
  /** The executor can be given tasks from now on. */
  final case class Use(executorId: String) extends Effect

  /** The executor gets no more tasks, and is to be given back when those that run there have ended. */
  final case class Asked(attachment: Long, why: String) extends Effect

  /**
   * The attachment has ended, although it was not given back. executorId is the executor that it had; None if the
   * executor has not said that it serves the application.
   */
  final case class Lost(executorId: Option[String], change: Change) extends Effect
}

/**
 * What an application knows of its executors in the pool. It is pure: without a clock, threads and Spark. Its methods
 * may be called from any thread, and call nothing.
 *
 * An attachment is known from two sides, and in any order: the pool says that it is assigned, and the executor says
 * that it is active, which is when it serves the application. An executor gets tasks while
 *
 *   assigned, active, not asked for, not given back, not ended
 *
 * hold of one and the same attachment. Executors keep their id when they are attached again; the numbers of their
 * attachments differ.
 */
final class Session {
  private final class Held(val attachment: Attachment) {
    var executorId: Option[String] = None // once it is active
    var asked = false
  }

  private val held = mutable.LinkedHashMap.empty[Long, Held] // assigned, not given back, not ended
  private val early = mutable.HashMap.empty[Long, String] // active, and not known to be assigned: the executor's id
  private val serving = mutable.HashMap.empty[String, Long] // executors that are active: the held attachment
  private var using: Option[Vector[String]] = None // executors, while they are the same
  private var demand = 0
  private var coming = 0 // executors that stages that come can use, of those that are held
  private var closed = false

  // What follows is of the present lease.
  private var lease = 0
  private var after = 0L // the number of the newest change
  private var growths = 0L // the number of the newest growth that the pool has received
  private var told: Option[Int] = None // the demand that the pool knows
  private var toldComing = 0 // of coming, what the pool knows
  private var back = Vector.empty[Long] // given back, and the pool may not know it
  private var whole = false // the pool knows that the application has closed
  private var newest = 0L // attachment that was assigned: numbers grow
  private val given = mutable.Set.empty[Long] // given back, and their end was not heard

  /**
   * A new lease begins. What is held is claimed with the first growth; what was given back is not, which the pool
   * takes for the same. It returns the number of the lease.
   */
  def enrolled(): Int = synchronized {
    lease += 1
    after = 0
    growths = 0
    told = None
    toldComing = 0
    back = Vector.empty
    whole = false
    newest = 0
    given.clear()
    early.clear() // Whoever was assigned by an earlier daemon only is not assigned any more.
    lease
  }

  /** The number of the newest change of a lease, which is known up to there; 0 if the lease is not the present one. */
  def confirms(of: Int): Long = synchronized { if (of == lease) after else 0 }

  /**
   * The application could use so many executors, and stages that come could use next. It returns whether the pool is to
   * be told. The pool hears of what comes when executors have nothing to do, and of no more than could be kept: it
   * keeps each for a time divided by that number.
   */
  def demands(executors: Int, next: Int = 0): Boolean = synchronized {
    demand = executors
    coming = if (held.size <= executors) 0 else if (coming == 0) next.min(held.size) else coming.min(next)
    toldDemand != told || comes != toldComing
  }

  /**
   * How many executors are kept idle for stages that come. The pool asks for executors without knowing which are idle:
   * if it has asked for others, these are not kept.
   */
  def keeps: Int = synchronized { comes.min(held.size - demand - held.values.count(_.asked)).max(0) }

  private def comes: Int = if (closed) 0 else coming

  /**
   * The demand to tell. A demand that falls is told in steps of an eighth while there is use for what is held, so that
   * a stage of thousands of tasks is not a message for each.
   */
  private def toldDemand: Option[Int] = told match {
    case _ if closed => Some(0)
    case Some(known) if demand < known && demand > held.size && known - demand < known / 8 => told
    case _ => Some(demand)
  }

  /** The application gives everything back, and demands nothing any more. */
  def close(): Unit = synchronized {
    closed = true
    held.keys.toList.foreach(giveBack)
  }

  /** The message that the pool is to get next; None if it knows everything. */
  def growth(): Option[Growth] = synchronized {
    val begins = told.isEmpty
    val demanded = toldDemand.filterNot(told.contains)
    val next = Some(comes).filter(_ != toldComing)
    if (demanded.nonEmpty || next.nonEmpty || back.nonEmpty || closed && !whole) {
      val holds = if (begins) held.values.map(_.attachment).toVector else Vector.empty
      Some(Growth(lease, growths + 1, begins, demanded, next, holds, back, closed))
    } else None
  }

  /** The pool has received a growth. */
  def grew(g: Growth): Unit = synchronized {
    if (g.lease == lease && g.number == growths + 1) {
      growths = g.number
      told = g.demand.orElse(told)
      toldComing = g.coming.getOrElse(toldComing)
      back = back.drop(g.givesBack.size)
      whole = g.closed
    }
  }

  /** Whether the pool knows that the application has closed. */
  def ended: Boolean = synchronized { whole }

  /** The pool has told changes. Those of an earlier lease, and those that have come before, have no effect. */
  def take(of: Int, changes: Seq[Change]): Seq[Effect] = synchronized {
    if (of != lease) Vector.empty
    else changes.toVector.flatMap { c =>
      if (c.number <= after) None
      else {
        after = c.number
        taken(c)
      }
    }
  }

  private def taken(c: Change): Option[Effect] = {
    val number = c.attachment.number
    c.what match {
      // It has gone on after a restart of the daemon.
      case Change.Assigned if held.contains(number) || given(number) => None
      case Change.Assigned =>
        val h = new Held(c.attachment)
        held(number) = h
        newest = newest.max(number)
        early.remove(number).map(serve(h, _))
      case Change.Asked =>
        held.get(number).filterNot(_.asked).map { h =>
          h.asked = true
          using = None
          Effect.Asked(number, c.why)
        }
      case Change.Ended =>
        early -= number
        given -= number
        held.get(number).map { h =>
          drop(h)
          Effect.Lost(h.executorId, c)
        }
      case _ => None // of a newer protocol
    }
  }

  /** An executor serves the application as an attachment says. */
  def active(executorId: String, attachment: Long): Option[Effect] = synchronized {
    held.get(attachment) match {
      case Some(h) if h.executorId.isEmpty => Some(serve(h, executorId)).filterNot(_ => h.asked)
      case Some(_) => None // It has been said before.
      case None =>
        if (attachment > newest) early(attachment) = executorId // and otherwise it has ended
        None
    }
  }

  private def serve(h: Held, executorId: String): Effect = {
    serving.get(executorId).flatMap(held.get).foreach(_.executorId = None) // which it does not serve any more
    h.executorId = Some(executorId)
    serving(executorId) = h.attachment.number
    using = None
    Effect.Use(executorId)
  }

  private def drop(h: Held): Unit = {
    held -= h.attachment.number
    using = None
    h.executorId.filter(serving.get(_).contains(h.attachment.number)).foreach(serving -= _)
  }

  /** The application has no task there, and starts none any more. What has ended already is ignored. */
  def giveBack(attachment: Long): Unit = synchronized {
    held.get(attachment).foreach { h =>
      drop(h)
      back :+= attachment
      given += attachment
    }
  }

  /** Whether an executor can be given tasks. */
  def usable(executorId: String): Boolean = synchronized {
    serving.get(executorId).exists(!held(_).asked)
  }

  /** The executors that can be given tasks, oldest attachment first: the same object while they are the same. */
  def executors: Vector[String] = synchronized {
    val all = using.getOrElse(held.values.filterNot(_.asked).flatMap(_.executorId).toVector)
    using = Some(all)
    all
  }

  /** The attachment by which an executor serves the application; None if it does not. */
  def attachmentOf(executorId: String): Option[Long] = synchronized { serving.get(executorId) }

  /** Whether the application has an executor: assigned, not given back, not ended. */
  def isHeld(attachment: Long): Boolean = synchronized { held.contains(attachment) }

  /** The number of executors that the application has, or gets at once. */
  def size: Int = synchronized { held.size }

  /** Whether the pool waits for an executor. */
  def isAsked: Boolean = synchronized { held.values.exists(_.asked) }

  /**
   * Gives back what is idle and asked for, and as many of the others as there are more than needed: first those that
   * do not serve yet, then the newest. busy says of an executor whether it has tasks. It returns whether something was
   * given back.
   */
  def giveBackIdle(needed: Int, busy: String => Boolean): Boolean = synchronized {
    val idle = held.values.filterNot(_.executorId.exists(busy)).toVector
    val (asked, others) = idle.partition(_.asked)
    asked.foreach(h => giveBack(h.attachment.number))
    val surplus = others.sortBy(h => (h.executorId.isDefined, -h.attachment.number)).take(held.size - needed)
    surplus.foreach(h => giveBack(h.attachment.number))
    asked.nonEmpty || surplus.nonEmpty
  }
}
