package org.apache.spark.scheduler.bellows

import scala.collection.mutable
import scala.util.Random

/**
 * Random interleavings of what the pool says, what executors say, and what the application does, against models that
 * remember everything and compute each answer anew. Without Spark, threads and time. Arguments: the number of
 * interleavings, and the first seed. It prints what happened before a difference, and ends with status 1.
 */
object SessionTest {
  def main(args: Array[String]): Unit = {
    val count = args.headOption.map(_.toInt).getOrElse(2000)
    val first = args.lift(1).map(_.toLong).getOrElse(System.nanoTime)
    val covered = mutable.TreeMap.empty[String, Int].withDefaultValue(0)
    for (seed <- first until first + count) {
      val world = new World(new Random(seed), covered)
      try world.run()
      catch {
        case e: Throwable =>
          println(s"seed $seed: ${e.getMessage}")
          world.log.foreach(line => println(s"  $line"))
          println(s"again: SessionTest 1 $seed")
          sys.exit(1)
      }
    }
    println(s"$count interleavings from seed $first: ${covered.map { case (what, n) => s"$n $what" }.mkString(", ")}")
    for (what <- World.Wanted) require(covered(what) > 0, s"no interleaving had: $what")
  }
}

/** One interleaving. */
private final class World(random: Random, covered: mutable.Map[String, Int]) {
  import World._

  val log = mutable.Buffer.empty[String]
  private val session = new Session
  private val history = mutable.Buffer.empty[Event] // what the session has been told, in order
  private var pool = newPool()
  private val executors = Vector.tabulate(4)(new Machine(_))
  private var lease = 0
  private var demand = 0
  private var closed = false
  private var unanswered: Option[Growth] = None // which is sent again until it is answered

  private def newPool(): Pool = new Pool(random.nextInt(1000000), cover)

  private def note(what: String): Unit = log += what

  private def cover(what: String): Unit = covered(what) += 1

  def run(): Unit = {
    enrol()
    for (_ <- 1 to 20 + random.nextInt(120)) {
      step()
      check()
    }
    settle()
  }

  private def step(): Unit = random.nextInt(13) match {
    case 0 =>
      demand = random.nextInt(if (random.nextInt(4) == 0) 100 else 6)
      note(s"demand $demand")
      session.demands(demand)
    case 1 | 2 => assign()
    case 3 => pool.attachments.values.filter(_.live).foreach { a =>
      if (random.nextInt(3) == 0) pool.say(Change.Asked, a)
    }
    case 4 => pick(pool.attachments.values.filter(_.live)).foreach { a =>
      note(s"the pool ends ${a.at.number}")
      pool.finish(a)
    }
    case 5 | 6 => hear()
    case 7 | 8 => activate()
    case 9 => tell(lost = random.nextInt(3))
    case 10 => giveBack()
    case 11 => giveBackIdle()
    case 12 => if (random.nextInt(6) == 0) restart()
  }

  private def pick[A](all: Iterable[A]): Option[A] = {
    val list = all.toVector
    if (list.isEmpty) None else Some(list(random.nextInt(list.size)))
  }

  /** The pool assigns an executor that is free, and the executor attaches. It does not before it knows a demand. */
  private def assign(): Unit =
    if (pool.knows) for (m <- pick(executors.filterNot(m => pool.isTaken(m.number)))) {
      val a = pool.assign(m.number)
      note(s"the pool assigns ${a.at.number}, executor ${m.number}")
      if (m.id.isEmpty || random.nextInt(4) == 0) m.id = s"${a.at.number}" // attached anew
      m.serves = a.at.number
      m.unsaid = true
    }

  /** An executor says that it is active; perhaps late, and perhaps its attachment has ended meanwhile. */
  private def activate(): Unit = for (m <- pick(executors.filter(m => m.unsaid && m.serves != 0))) {
    m.unsaid = false
    note(s"executor ${m.id} is active with ${m.serves}")
    val before = model
    if (!before.has(Change.Assigned, m.serves)) cover("active before assigned")
    val isUsed = before.held(m.serves) && before.executor(m.serves).isEmpty && !before.asked(m.serves)
    val effect = session.active(m.id, m.serves)
    history += Served(m.id, m.serves)
    same("effects", effect.toList, if (isUsed) List(Effect.Use(m.id)) else Nil)
  }

  /** The session hears changes: all that it has not confirmed, or the first of them, or some again. */
  private def hear(all: Boolean = false): Unit = {
    val from = if (!all && random.nextInt(4) == 0) 0L else session.confirms(lease)
    val fresh = pool.changes.filter(_.number > from)
    val some = if (all) fresh else fresh.take(1 + random.nextInt(3))
    if (some.nonEmpty) {
      note(s"hears ${some.map(c => s"${c.number}:${c.what} ${c.attachment.number}").mkString(", ")}")
      val known = session.confirms(lease)
      if (some.exists(_.number <= known)) cover("changes that come again")
      val expected = mutable.Buffer.empty[Effect]
      for (c <- some if c.number > known) {
        val n = c.attachment.number
        val before = model
        history += Said(c)
        c.what match {
          case Change.Assigned =>
            if (!before.held(n) && !before.gave(n)) before.early(n).foreach(id => expected += Effect.Use(id))
          case Change.Asked => if (before.held(n) && !before.asked(n)) expected += Effect.Asked(n, c.why)
          case _ => if (before.held(n)) {
            cover("lost")
            expected += Effect.Lost(before.executor(n), c)
          }
        }
      }
      same("effects", session.take(lease, some.toVector).toList, expected.toList)
    }
  }

  /** The next growth is sent. Its answer, or the message, may be lost. */
  private def tell(lost: Int): Unit = unanswered.orElse(session.growth()).foreach { g =>
    note(s"tells $g, ${Seq("received", "which is lost", "the answer to which is lost")(lost)}")
    if (lost != 0) cover("growths that were lost")
    if (lost != 1) pool.receive(g, executors)
    if (lost == 0) session.grew(g)
    unanswered = if (lost == 0) None else Some(g)
  }

  private def giveBack(): Unit = for (n <- pick(model.allHeld)) {
    note(s"gives back $n")
    session.giveBack(n)
    history += Gave(n)
  }

  private def giveBackIdle(): Unit = {
    val needed = random.nextInt(4)
    val busy = executors.map(_.id).filter(_ => random.nextBoolean()).toSet
    val m = model
    note(s"gives back idle ones, $needed needed, busy $busy")
    val given = session.giveBackIdle(needed, busy)
    val left = m.allHeld.filter(n => session.isHeld(n)).toSet
    val gone = m.allHeld.filterNot(left)
    gone.foreach(history += Gave(_))
    same("given", given, gone.nonEmpty)
    val idle = m.allHeld.filterNot(n => m.executor(n).exists(busy))
    require(gone.forall(idle.contains), s"gave back $gone, of which some are busy: idle are $idle")
    require(idle.filter(m.asked).forall(gone.contains), "one that is asked for and idle was kept")
    val others = gone.filterNot(m.asked)
    val kept = m.allHeld.size - idle.count(m.asked)
    same("surplus", others.size, idle.filterNot(m.asked).size.min((kept - needed).max(0)))
    val unready = idle.filterNot(m.asked).filter(m.executor(_).isEmpty)
    if (others.exists(m.executor(_).nonEmpty)) {
      require(unready.forall(gone.contains), "one that serves was given back before one that does not")
    }
  }

  private def enrol(): Unit = {
    lease = session.enrolled()
    history += Enrolled
  }

  /** The daemon is killed, and a new one begins. The session may hear what the old one has said, which is void. */
  private def restart(): Unit = {
    cover("restarts")
    note("the daemon begins anew")
    val old = lease
    val before = pool
    pool = newPool()
    executors.foreach(m => if (random.nextInt(4) == 0) m.serves = 0)
    enrol()
    unanswered.foreach(session.grew) // The answer of the old daemon comes late.
    unanswered = None
    same("confirmed", session.confirms(lease), 0L)
    if (before.changes.nonEmpty) same("effects", session.take(old, before.changes.toVector).toList, Nil)
    if (random.nextBoolean()) check()
  }

  /** In the end the pool knows what the session has, and the session what the pool says. */
  private def settle(): Unit = {
    if (random.nextInt(3) == 0) {
      note("closes")
      cover("closed")
      closed = true
      model.allHeld.foreach(history += Gave(_))
      session.close()
    }
    for (_ <- 1 to 3) {
      while (unanswered.orElse(session.growth()).nonEmpty) tell(lost = 0)
      hear(all = true)
    }
    check()
    require(session.growth().isEmpty, "it has something to tell still")
    same("held and live", model.allHeld.toSet, pool.attachments.values.filter(_.live).map(_.at.number).toSet)
    val known = if (closed) 0 else demand
    val isNear = known > session.size && pool.demand > known && pool.demand - known < pool.demand / 8
    require(pool.demand == known || isNear, s"the pool knows a demand of ${pool.demand}, not $known")
    same("closed", pool.closed, closed)
  }

  private def check(): Unit = {
    val m = model
    same("size", session.size, m.allHeld.size)
    same("is asked", session.isAsked, m.allHeld.exists(m.asked))
    for (id <- executors.map(_.id).filter(_.nonEmpty)) {
      same(s"usable $id", session.usable(id), m.usable(id))
      if (m.usable(id)) cover("executors that can be used")
    }
    val all = session.executors
    same("executors", all.toSet, history.collect { case Served(id, _) if m.usable(id) => id }.toSet)
    require(session.executors eq all, "executors that are the same are another object")
  }

  private def same[A](what: String, is: A, should: A): Unit = require(is == should, s"$what: is $is, should be $should")

  /** What follows from all that the session was told. */
  private def model: Model = new Model(history.toVector)
}

private object World {
  val Wanted: Seq[String] = Seq("active before assigned", "changes that come again", "lost", "growths that were lost",
    "restarts", "executors that can be used", "closed", "adopted", "claimed in vain")

  sealed trait Event
  final case class Said(change: Change) extends Event
  final case class Served(id: String, attachment: Long) extends Event
  final case class Gave(attachment: Long) extends Event
  case object Enrolled extends Event

  /** An executor: the id that Spark knows, and the attachment that it serves. */
  final class Machine(val number: Int) {
    var id = ""
    var serves = 0L
    var unsaid = false // the driver was not told yet
  }

  /** Computes each answer from the whole history. */
  final class Model(history: Vector[Event]) {
    private def place(found: Event => Boolean): Int = history.indexWhere(found)

    private def said(what: String, n: Long): Int = place {
      case Said(c) => c.what == what && c.attachment.number == n
      case _ => false
    }

    def has(what: String, n: Long): Boolean = said(what, n) >= 0

    def gave(n: Long): Boolean = history.contains(Gave(n))

    def held(n: Long): Boolean = has(Change.Assigned, n) && !has(Change.Ended, n) && !gave(n)

    def asked(n: Long): Boolean = {
      val from = said(Change.Assigned, n)
      from >= 0 && history.drop(from).exists {
        case Said(c) => c.what == Change.Asked && c.attachment.number == n
        case _ => false
      }
    }

    def allHeld: Vector[Long] = history.collect {
      case Said(c) if c.what == Change.Assigned && held(c.attachment.number) => c.attachment.number
    }.distinct

    /** What an executor has said of an attachment that may be assigned yet: not under an earlier lease. */
    def early(n: Long): Option[String] = history.drop(history.lastIndexOf(Enrolled)).collectFirst {
      case Served(id, `n`) => id
    }

    /**
     * When an attachment began to be served, and by which executor: what was said before it was assigned counts if it
     * is of that lease.
     */
    private def served(n: Long): Option[(Int, String)] = {
      val from = said(Change.Assigned, n)
      val since = history.take(from.max(0)).lastIndexOf(Enrolled).max(0)
      val at = history.indexWhere({ case Served(_, `n`) => true; case _ => false }, since)
      if (from < 0 || at < 0 || !new Model(history.take(at.max(from) + 1)).held(n)) None
      else Some((at.max(from), history(at).asInstanceOf[Served].id))
    }

    /** The executor that serves an attachment; none if it serves another one since. */
    def executor(n: Long): Option[String] = served(n).collect {
      case (at, id) if !attachments.exists(m => m != n && served(m).exists(s => s._2 == id && s._1 > at)) => id
    }

    private def attachments: Vector[Long] = history.collect { case Served(_, n) => n }.distinct

    def usable(id: String): Boolean = allHeld.exists(n => executor(n).contains(id) && !asked(n))
  }

  /** An attachment as the pool knows it. */
  final class PoolAttachment(val at: Attachment) {
    var live = true
  }
}

/** A pool that remembers all changes. */
private final class Pool(first: Int, cover: String => Unit) {
  import World._

  val attachments = mutable.LinkedHashMap.empty[Long, PoolAttachment]
  val changes = mutable.Buffer.empty[Change]
  var demand = 0
  var closed = false
  private var received = 0L

  def knows: Boolean = received > 0

  def isTaken(executor: Int): Boolean = attachments.values.exists(a => a.live && a.at.executor == executor)

  private var next = first.toLong * 1000

  def say(what: String, a: PoolAttachment): Unit =
    changes += Change(changes.size + 1L, what, a.at, failed = false, "", s"change ${changes.size + 1}")

  def assign(executor: Int): PoolAttachment = {
    next += 1
    val a = new PoolAttachment(Attachment(next, executor, 0))
    attachments(next) = a
    say(Change.Assigned, a)
    a
  }

  def finish(a: PoolAttachment): Unit = {
    a.live = false
    say(Change.Ended, a)
  }

  /** A growth is received, perhaps again. Of the attachments that it claims, those go on that their executors serve. */
  def receive(g: Growth, executors: Seq[Machine]): Unit = if (g.number > received) {
    require(g.number == received + 1, s"growth ${g.number} after $received")
    require(g.begins == (received == 0), s"growth ${g.number}: begins is ${g.begins}")
    require(g.begins || g.holds.isEmpty, s"growth ${g.number} claims ${g.holds}")
    received = g.number
    g.demand.foreach(demand = _)
    closed = g.closed
    for (h <- g.holds) {
      val a = new PoolAttachment(h)
      if (executors.exists(m => m.number == h.executor && m.serves == h.number)) {
        attachments(h.number) = a
        say(Change.Assigned, a)
        cover("adopted")
      } else {
        finish(a)
        cover("claimed in vain")
      }
    }
    for (n <- g.givesBack; a <- attachments.get(n) if a.live) finish(a)
  }
}
