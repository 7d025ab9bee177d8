package org.apache.spark.scheduler.bellows

import java.lang.management.ManagementFactory

import scala.collection.mutable
import scala.util.Random

import org.apache.spark.{JobArtifactSet, SparkConf, SparkContext, TaskContext}
import org.apache.spark.scheduler.{DAGScheduler, DirectTaskResult, ExecutorCacheTaskLocation, SchedulerBackend, Task,
  TaskInfo, TaskLocation, TaskSet, TaskSetManager, WorkerOffer}

/**
 * Stages that run at once are kept apart, and no executor is idle beside a task: the scheduler of Spark, with offers
 * and ends of tasks in an order that the test chooses. Nothing runs. It prints what differs, and ends with status 1.
 */
object SubsetsTest {
  def main(args: Array[String]): Unit = {
    subsets()
    graphs()
    many()
    val conf = new SparkConf(false).setMaster("local[1]").setAppName("subsets").set("spark.ui.enabled", "false")
      .set("spark.locality.wait", "0").set("spark.driver.host", "localhost")
      .set("spark.driver.bindAddress", "127.0.0.1")
    val sc = new SparkContext(conf)
    sc.setLogLevel("WARN")
    try {
      scenarios(sc)
      val seed = System.nanoTime
      for (n <- 0 until 200) {
        val run = new RandomRun(sc, new Random(seed + n))
        try run.run()
        catch {
          case e: Throwable =>
            println(s"seed ${seed + n}: ${e.getMessage}")
            run.log.foreach(line => println(s"  $line"))
            sys.exit(1)
        }
      }
    } finally sc.stop()
    println("200 random orders of offers, stages and ends of tasks")
  }

  private def same[A](what: String, is: A, should: A): Unit = require(is == should, s"$what: is $is, should be $should")

  /** Stages keep what they have, and share all that they can use. */
  private def subsets(): Unit = {
    val random = new Random(5)
    for (_ <- 1 to 2000) {
      val subsets = new Subsets
      var before = Map.empty[String, Int]
      for (_ <- 1 to 5) {
        val executors = (0 until 12).filter(_ => random.nextInt(3) > 0).map(_.toString)
        val stages = (0 until 5).filter(_ => random.nextBoolean()).map { s =>
          val runs = executors.filter(_ => random.nextInt(4) == 0).map(_ -> (1 + random.nextInt(2))).toMap
          Subsets.Running(s, 1 + random.nextInt(20), random.nextInt(2) * 30, 1 + random.nextInt(8), runs)
        }
        subsets.divide(executors, stages)
        val now = executors.flatMap(e => subsets.stageOf(e).map(e -> _)).toMap
        same("given", now.size, executors.size.min(stages.map(_.demand).sum))
        for (s <- stages) {
          val own = now.collect { case (e, s.stage) => e }.toSet
          same("has", subsets.has(s.stage), own.nonEmpty)
          require(own.size <= s.demand, s"stage ${s.stage} demands ${s.demand} and has $own")
          val held = executors.filter(before.get(_).contains(s.stage)).toSet
          require(own.subsetOf(held) || held.subsetOf(own), s"stage ${s.stage} had $held and has $own")
          val worse = (held -- own).find(e => (own & held).exists(o => s.runs.getOrElse(o, 0) < s.runs.getOrElse(e, 0)))
          require(worse.isEmpty, s"stage ${s.stage} was taken $worse, has $own, and its tasks are ${s.runs}")
        }
        before = now
      }
    }
  }

  /** What a stage costs does not depend on how many there are in its job. */
  private def graphs(): Unit = {
    val stages = 20000
    var asked = 0
    val graph = new JobGraph(0 until stages, _ => 10, { s => // Each reads the two before it.
      asked += 1
      Seq(s - 1, s - 2).filter(_ >= 0)
    })
    same("questions for parents", asked, stages)
    same("weights", Seq(stages - 1, stages - 2, stages - 3, 0).map(graph.below),
      Seq(0L, 10L, 30L, 2 * Division.MostWeight))
    same("readers", graph.readers(7).sorted, Seq(8, 9))
    same("of another job", (graph.contains(stages), graph.readers(stages), graph.below(stages)), (false, Nil, 0L))
    same("questions for parents", asked, stages)
  }

  /** Of many stages that run at once, one that begins makes nothing but a few numbers for each. */
  private def many(): Unit = {
    val stages = 20000
    val executors = (0 until 8).map(_.toString)
    val subsets = new Subsets
    val threads = ManagementFactory.getThreadMXBean.asInstanceOf[com.sun.management.ThreadMXBean]
    val all = (0 until stages).map(s => Subsets.Running(s, 1 + s % 50, s % 7, 1 + s % 50, Map.empty))
    def bytes(stages: Int): Long = {
      val before = threads.getThreadAllocatedBytes(Thread.currentThread.getId)
      subsets.divide(executors, all.take(stages))
      threads.getThreadAllocatedBytes(Thread.currentThread.getId) - before
    }
    bytes(stages) // the first time also what is made once
    val (few, more) = (bytes(stages / 2), bytes(stages))
    println(s"$stages stages at once: ${(more - few) / (stages / 2)} bytes each")
    require(more - few < MostBytes * (stages / 2), s"${stages / 2} more stages take ${more - few} bytes")
  }

  private val MostBytes = 150

  private def sizes(rig: Rig): Map[Int, Int] = rig.running.map { case (stage, own) => stage -> own.size }

  private def scenarios(sc: SparkContext): Unit = {
    val two = new Rig(sc, 4)
    two.submit(0, 20, on = Seq.fill(20)("host"))
    two.submit(1, 20)
    two.offer()
    same("two stages that begin", two.running, Map(0 -> Set("0", "1"), 1 -> Set("2", "3")))
    for (_ <- 1 to 10) {
      two.end("0", "1", "2", "3")
      two.offer()
    }
    same("tasks by stage and executor", two.started.toMap,
      Map((0, "0") -> 10, (0, "1") -> 10, (1, "2") -> 10, (1, "3") -> 10))

    val late = new Rig(sc, 4)
    late.submit(0, 100)
    late.offer()
    late.submit(1, 100)
    late.offer()
    same("one that has all", late.running, Map(0 -> Set("0", "1", "2", "3")))
    late.end("3", "1")
    late.offer()
    same("when tasks end", late.running, Map(0 -> Set("0", "1", "2"), 1 -> Set("3")))
    late.end("0", "2")
    late.offer()
    same("when more end", late.running, Map(0 -> Set("0", "1"), 1 -> Set("2", "3")))

    val large = new Rig(sc, 4)
    large.submit(0, 100)
    large.submit(1, 2)
    large.submit(2, 2)
    large.offer()
    same("small ones of later jobs have none", large.running, Map(0 -> Set("0", "1", "2", "3")))

    val small = new Rig(sc, 4)
    small.submit(0, 1)
    small.submit(1, 1000)
    small.offer()
    same("a small one of an earlier job", sizes(small), Map(0 -> 1, 1 -> 3))

    val last = new Rig(sc, 6, below = stage => if (stage == 1) 40 else 0)
    last.submit(0, 40)
    last.submit(1, 4)
    last.submit(2, 60)
    last.offer()
    same("three stages", last.running, Map(0 -> Set("0", "1"), 1 -> Set("2", "3"), 2 -> Set("4", "5")))
    for (end <- Seq(Seq("2", "3"), Seq("2"))) {
      last.end(end: _*)
      last.offer()
    }
    same("what one leaves at its end", last.running, Map(0 -> Set("0", "1", "2"), 1 -> Set("3"), 2 -> Set("4", "5")))
    last.end("2")
    last.offer()
    same("is divided", last.running, Map(0 -> Set("0", "1"), 1 -> Set("3"), 2 -> Set("2", "4", "5")))

    val path = new Rig(sc, 4, below = { case 0 => 20L; case _ => 0L })
    path.submit(0, 10)
    path.submit(1, 10)
    path.offer()
    same("the longer path", sizes(path), Map(0 -> 3, 1 -> 1))

    val near = new Rig(sc, 4)
    near.submit(0, 4, at = Seq("3"))
    near.submit(1, 4)
    near.offer()
    require(near.running(0)("3"), s"a task is not where its data are: ${near.running}")

    val hosts = new Rig(sc, 4, host = e => if (e == "3") "far" else "near")
    hosts.submit(0, 4, on = Seq("far"))
    hosts.submit(1, 12)
    hosts.offer()
    require(hosts.running(0)("3"), s"a task is not on the host of its data: ${hosts.running}")

    val ends = new Rig(sc, 4)
    ends.submit(0, 16)
    ends.submit(1, 4)
    ends.offer()
    for (_ <- 1 to 4) {
      same("one of 16 tasks and one of 4", sizes(ends), Map(0 -> 3, 1 -> 1))
      ends.end("0", "1", "2", "3")
      ends.offer()
    }
    same("what is left by one that has ended", sizes(ends), Map(0 -> 4))

    // Tasks that run count as long as they run, although no other task of their stage waits.
    val few = new Rig(sc, 4)
    few.submit(0, 3)
    for (left <- Seq(3, 3, 2, 1, 0)) {
      few.offer()
      if (left < 3) few.end(few.tasks.values.head._2)
      same("tasks that run", few.scheduler.tasksLeft, left)
    }
  }
}

/** A scheduler, and executors that run nothing. */
private class Rig(sc: SparkContext, count: Int, slotsEach: Int = 1, below: Int => Long = _ => 0L,
    host: String => String = _ => "host") {

  var executors: Vector[String] = Vector.tabulate(count)(_.toString)
  val started = mutable.TreeMap.empty[(Int, String), Int].withDefaultValue(0)
  val tasks = mutable.LinkedHashMap.empty[Long, (TaskSetManager, String)] // which run: of which stage and where
  private val serializer = sc.env.closureSerializer.newInstance()

  val scheduler: StageScheduler = new StageScheduler(sc) {
    override protected def executors: Seq[String] = Rig.this.executors
    override protected def slots: Int = slotsEach
    override protected def below(job: Int, stage: Int): Long = Rig.this.below(stage)
  }
  scheduler.initialize(new SchedulerBackend {
    override def start(): Unit = ()
    override def stop(): Unit = ()
    override def reviveOffers(): Unit = ()
    override def defaultParallelism(): Int = 1
    override def getTaskThreadDump(id: Long, on: String): Option[org.apache.spark.status.api.v1.ThreadStackTrace] = None
    override def maxNumConcurrentTasks(rp: org.apache.spark.resource.ResourceProfile): Int = count
  })
  private val dag = new DAGScheduler(sc, scheduler) {
    override def taskStarted(task: Task[_], info: TaskInfo): Unit = ()
    override def executorAdded(id: String, on: String): Unit = ()
    override def taskEnded(task: Task[_], reason: org.apache.spark.TaskEndReason, result: Any,
      updates: Seq[org.apache.spark.util.AccumulatorV2[_, _]], peaks: Array[Long], info: TaskInfo): Unit = ()
  }

  def close(): Unit = {
    dag.stop()
    scheduler.stop()
  }

  /** Submits a stage of a job of its own. The data of its first tasks are in executors, or on hosts. */
  def submit(stage: Int, count: Int, at: Seq[String] = Nil, on: Seq[String] = Nil): Unit = {
    val places = at.map(e => ExecutorCacheTaskLocation(host(e), e)) ++ on.map(TaskLocation(_))
    val all = Array.tabulate[Task[_]](count)(n => new Rig.Nothing(stage, n, places.lift(n).toSeq))
    scheduler.submitTasks(new TaskSet(all, stage, 0, stage, null, 0, None))
  }

  /** Offers what some executors have free. */
  def offer(some: Seq[String] = executors): Unit = {
    val free = some.map { e =>
      WorkerOffer(e, host(e), slotsEach - tasks.values.count(_._2 == e), Some(host(e)))
    }
    for (t <- scheduler.resourceOffers(free.toIndexedSeq).flatten) {
      val of = scheduler.taskIdToTaskSetManager.get(t.taskId)
      tasks(t.taskId) = (of, t.executorId)
      started((of.stageId, t.executorId)) += 1
    }
    for (e <- executors) require(tasks.values.count(_._2 == e) <= slotsEach, s"executor $e runs $tasks")
  }

  /** One task on each of some executors ends, if there is one. */
  def end(some: String*): Unit = for (e <- some; (id, (of, _)) <- tasks.find(_._2._2 == e)) {
    tasks -= id
    scheduler.handleSuccessfulTask(of, id, new DirectTaskResult[Int](serializer.serialize(0), Nil, Array.empty[Long]))
  }

  /** Stages: the executors where their tasks run. */
  def running: Map[Int, Set[String]] =
    tasks.values.groupBy(_._1.stageId).map { case (stage, all) => stage -> all.map(_._2).toSet }
}

private object Rig {
  final class Nothing(stage: Int, partition: Int, places: Seq[TaskLocation])
    extends Task[Int](stage, 0, partition, 1, JobArtifactSet.emptyJobArtifactSet) {
    override def runTask(context: TaskContext): Int = 0
    override def preferredLocations: Seq[TaskLocation] = places
  }
}

/** In any order: when all has been offered, no executor is idle beside a task, and each task runs once. */
private final class RandomRun(sc: SparkContext, random: Random) {
  val log = mutable.Buffer.empty[String]
  private val slots = 1 + random.nextInt(3)
  private val rig = new Rig(sc, 1 + random.nextInt(6), slots, _ => random.nextInt(3) * 20L, e => s"h${e.toInt % 2}")
  private val all = rig.executors
  private val submitted = mutable.HashMap.empty[Int, Int] // stages: their tasks

  private def waiting: Int = submitted.values.sum - rig.started.values.sum

  def run(): Unit = {
    for (_ <- 1 to 60) {
      random.nextInt(6) match {
        case 0 =>
          val (stage, count) = (submitted.size, 1 + random.nextInt(12))
          val at = Seq.fill(random.nextInt(3))(all(random.nextInt(all.size)))
          log += s"stage $stage of $count tasks, near $at"
          submitted(stage) = count
          rig.submit(stage, count, at)
        case 1 | 2 =>
          val some = all.filter(_ => random.nextBoolean())
          log += s"tasks end on $some"
          rig.end(some: _*)
        case 3 =>
          val some = rig.executors.filter(_ => random.nextBoolean())
          log += s"offer $some"
          rig.offer(some)
        case 4 =>
          rig.offer()
          log += s"offer all: ${rig.running}"
          val idle = rig.executors.map(e => slots - rig.tasks.values.count(_._2 == e)).sum
          require(idle == 0 || waiting == 0, s"$idle slots are idle beside $waiting tasks")
        case 5 =>
          rig.executors = all.filter(_ => random.nextInt(4) > 0)
          log += s"executors are ${rig.executors}"
      }
    }
    rig.executors = all
    while (rig.tasks.nonEmpty || waiting > 0) {
      rig.end(all: _*)
      rig.offer()
    }
    rig.close()
    require(rig.started.values.sum == submitted.values.sum, s"${rig.started} of $submitted")
  }
}
