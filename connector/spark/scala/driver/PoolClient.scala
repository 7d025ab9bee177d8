package org.apache.spark.scheduler.bellows

import java.io.{ByteArrayOutputStream, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.TimeUnit

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.SparkException
import org.apache.spark.internal.Logging

/**
 * What executors of a pool have, of what bellows says of it: task slots, memory of the container, and heap. memory is
 * the most that one of class flex may have; 0 is that of its machine, which a driver need not know.
 */
private[spark] final case class PoolSize(cores: Int, memory: Long, most: Int) {
  /** The heap of an executor: what bellows leaves of its memory, as spark.executor.memoryOverhead would. */
  def heap: Long = if (memory == 0) Long.MaxValue else memory - (384L << 20).max(memory / 10)

  override def toString: String = s"$cores ${if (cores == 1) "core" else "cores"} and " +
    (if (memory == 0) "the memory of its machine"
    else s"${memory >> 20} MiB, of which the heap is ${heap >> 20} MiB")
}

/** How an application describes itself to its pool. */
private[spark] final case class Enrolment(pool: String, key: String, name: String, weight: Double, queue: String)

/** Who hears what happens to the executors of an application. Its methods are called from one thread. */
private[spark] trait PoolListener {
  def happened(effects: Seq[Effect]): Unit

  /** The pool has ended the application: it was cancelled, or cannot go on. */
  def ended(why: String): Unit
}

/**
 * The client of one application of a pool: it keeps the lease, tells what the session has to tell, and hears what the
 * pool says. After a restart of the daemon, or if its lease has ended, it enrols again with the same key, and claims
 * the executors that it has.
 */
private[spark] final class PoolClient(place: Place, enrolment: Enrolment, session: Session, listener: PoolListener)
  extends Logging {

  import PoolClient._

  private final class Lease(val secret: String, val length: Long, val application: Long, val number: Int)

  private val telling = place.link()
  private val hearing = place.link()
  private val wakes = new Object
  private var woken = false // guarded by wakes
  private var payload: Array[Byte] = _ // guarded by this
  private var lease: Lease = _ // guarded by this; null if there is none
  @volatile private var leaving = false // close was called
  @volatile private var stopped = false

  /** What the executors of the pool have; None if this user may not see it. It fails if there is no such pool. */
  def size(): Option[PoolSize] = {
    val answer = patiently("ask for the pool", Some(StartPatience)) {
      telling.send("GET", path(), Array.emptyByteArray)
    }
    answer.status match {
      case 200 =>
        val spec = Json.parse(answer.body).path("spec")
        val memory = if (spec.path("class").asText == "flex") "max_memory_bytes" else "ideal_memory_bytes"
        Some(PoolSize((spec.path("cpu_millicores").asInt(1000) / 1000).max(1), spec.path(memory).asLong,
          spec.path("max").asInt(1)))
      case 403 => None
      case _ => throw new SparkException(s"pool ${enrolment.pool}: ${answer.refusal}")
    }
  }

  /** Enrols the application. attach is what executors are to know. */
  def start(attach: Array[Byte]): Unit = {
    require(attach.length <= MostAttach,
      s"the configuration of the application has ${attach.length} bytes, more than $MostAttach")
    synchronized { payload = attach }
    hold(telling, Some(StartPatience))
    spawn("bellows-tells")(tellAll())
    spawn("bellows-hears")(hearAll())
  }

  /** Sends what the session has to tell. */
  def wake(): Unit = wakes.synchronized {
    woken = true
    wakes.notifyAll()
  }

  /** Ends the application in the pool, and waits for at most some seconds until the pool knows it. */
  def close(): Unit = {
    leaving = true
    session.close()
    wake()
    val deadline = System.nanoTime + TimeUnit.SECONDS.toNanos(Leaving)
    wakes.synchronized {
      while (!stopped && !session.ended && System.nanoTime < deadline) wakes.wait(20)
    }
    stopped = true
    wake()
    telling.close()
    hearing.close()
  }

  private def spawn(name: String)(run: => Unit): Unit = {
    val thread = new Thread(() => {
      try run
      catch {
        case _: IOException if stopped =>
        case e: Throwable => end(s"its connection to the pool failed: $e", e)
      }
    }, name)
    thread.setDaemon(true)
    thread.start()
  }

  private def end(why: String, cause: Throwable = null): Unit = {
    if (!stopped) {
      stopped = true
      logError(s"The pool ${enrolment.pool} has ended this application: $why", cause)
      listener.ended(why)
    }
    wake()
  }

  /** Tells the pool what the session knows that it does not, and keeps the lease. */
  private def tellAll(): Unit =
    while (!stopped) {
      val l = hold(telling)
      val growth = session.growth()
      if (growth.nonEmpty || rest(l.length / 3)) {
        val answer = post(telling, s"applications/${l.application}/tasks", growthText(l.secret, growth))
        answer.status match {
          case 200 =>
            growth.foreach(session.grew)
            if (session.ended) wakes.synchronized(wakes.notifyAll())
          case Gone => lost(l)
          case _ => end(answer.refusal)
        }
      }
    }

  /** Waits for news. It returns true if the lease needs a message, because nothing was said for so many ms. */
  private def rest(millis: Long): Boolean = wakes.synchronized {
    if (!woken && !stopped) wakes.wait(millis.max(10))
    val idle = !woken
    woken = false
    idle && !stopped
  }

  private def growthText(secret: String, growth: Option[Growth]): String = growth match {
    case None => Json.text("lease" -> secret, "number" -> 0)
    case Some(g) =>
      // One stage is for all that Spark runs: an executor need not be given back to go from one of its stages to the
      // next. Another one is for what comes after that, and demands nothing.
      val runs = g.demand.map(n => Seq("stage" -> 0, "demand" -> n) ++
        (if (g.begins) Seq("name" -> "spark", "function" -> Function) else Nil))
      val comes = Seq("stage" -> 1, "tasks" -> g.coming.getOrElse(0)) ++
        (if (g.begins) Seq("name" -> "next", "function" -> Function, "after" -> List(0)) else Nil)
      val stages = runs.toList ++ (if (g.begins || g.coming.nonEmpty) List(comes) else Nil)
      val holds = g.holds.map(a => Seq("attachment" -> a.number, "executor" -> a.executor, "stage" -> a.stage))
      Json.text(Seq("lease" -> secret, "number" -> g.number, "closed" -> g.closed) ++
        (if (stages.nonEmpty) Some("stages" -> stages) else None) ++
        (if (holds.nonEmpty) Some("holds" -> holds.toList) else None) ++
        (if (g.givesBack.nonEmpty) Some("gives_back" -> g.givesBack.toList) else None): _*)
  }

  /** Hears what happens to executors. */
  private def hearAll(): Unit =
    while (!stopped) {
      val l = hold(hearing)
      val answer = post(hearing, s"applications/${l.application}/results",
        Json.text("lease" -> l.secret, "after" -> session.confirms(l.number)))
      answer.status match {
        case 200 =>
          val results = answer.head
          val effects = session.take(l.number, changes(results))
          if (effects.nonEmpty) listener.happened(effects)
          if (results.path("ended").asBoolean) {
            if (leaving) return
            end(Option(results.path("why").asText).filter(_.nonEmpty).getOrElse("the daemon does not know it any more"))
          }
        case Gone => lost(l)
        case _ => end(answer.refusal)
      }
    }

  private def changes(results: JsonNode): Seq[Change] = {
    val out = Vector.newBuilder[Change]
    val all = results.path("changes").elements()
    while (all.hasNext) {
      val c = all.next()
      val attachment =
        Attachment(c.path("attachment").asLong, c.path("executor").asInt, c.path("stage").asInt)
      out += Change(c.path("number").asLong, c.path("what").asText, attachment, c.path("failed").asBoolean,
        c.path("cause").asText, c.path("why").asText)
    }
    out.result()
  }

  /** The present lease, after enrolling if there is none. */
  private def hold(link: Link, patience: Option[Long] = None): Lease = synchronized {
    if (lease == null) {
      val text = Json.text(Seq("key" -> enrolment.key, "name" -> enrolment.name, "drives" -> true,
        "attempts" -> Attempts) ++
        (if (enrolment.weight > 0) Some("weight" -> enrolment.weight) else None) ++
        (if (enrolment.queue.nonEmpty) Some("queue" -> enrolment.queue) else None): _*)
      val answer = post(link, "applications", text, payload, patience)
      if (answer.status != 200) throw new SparkException(s"pool ${enrolment.pool}: ${answer.refusal}")
      val head = answer.head
      lease = new Lease(head.path("lease").asText, head.path("length_ms").asLong, head.path("application").asLong,
        session.enrolled())
    }
    lease
  }

  private def lost(l: Lease): Unit = synchronized {
    if (lease eq l) {
      logWarning(s"The lease in pool ${enrolment.pool} has ended: enrolling again")
      lease = null
    }
  }

  private def path(below: String = ""): String =
    s"/v1/pools/${enrolment.pool}" + (if (below.isEmpty) "" else s"/$below")

  /** Sends a message: an object of JSON, a line feed, and the payload. */
  private def post(link: Link, below: String, head: String, payload: Array[Byte] = Array.emptyByteArray,
      patience: Option[Long] = None): Answer = {
    val body = new ByteArrayOutputStream
    body.write(head.getBytes(UTF_8))
    body.write('\n')
    body.write(payload)
    patiently(s"send $below", patience)(link.send("POST", path(below), body.toByteArray))
  }

  /**
   * Tries again what fails because the daemon is away, or has no room. What it answers otherwise, even an error, is
   * final. patience is for how many seconds; without it, as long as the application lasts: its executors go on
   * meanwhile.
   */
  private def patiently(what: String, patience: Option[Long])(request: => Answer): Answer = {
    var pause = FirstPause
    var failed = 0L // since when, in ns
    var warned = 0L
    while (true) {
      val problem = try {
        val answer = request
        if (answer.status < 500 && answer.status != 429) return answer
        answer.refusal
      } catch {
        case e: IOException if !stopped => e.toString
      }
      val now = System.nanoTime
      if (failed == 0) failed = now
      val seconds = TimeUnit.NANOSECONDS.toSeconds(now - failed)
      if (patience.exists(seconds >= _)) {
        throw new SparkException(s"$what: the daemon of bellows at $place has not answered for $seconds s: $problem")
      }
      if (seconds >= warned) {
        logWarning(s"The daemon of bellows at $place does not answer for $seconds s: $problem")
        warned = (2 * seconds).max(5)
      }
      Thread.sleep(pause)
      pause = (2 * pause).min(LongestPause)
      if (stopped) throw new IOException("the application has ended")
    }
    throw new IllegalStateException
  }
}

private[spark] object PoolClient {
  /** What executors call that are attached. */
  val Function = "spark"

  // So many failures in a row of executors to serve the application end it. Spark ends a job whose task has failed 4
  // times, and the application goes on: that must come first.
  private val Attempts = 16

  private val Gone = 410
  private val MostAttach = 1 << 20 // bytes
  private val StartPatience = 30L // seconds in which a daemon may start
  private val Leaving = 2L // seconds
  private val FirstPause = 20L // ms
  private val LongestPause = 100L // ms: who enrols late after a restart of the daemon, has lost its executors
}
